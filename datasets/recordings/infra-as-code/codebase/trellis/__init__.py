"""trellis: plan and apply the company's infrastructure from TOML, against one provider."""


class TrellisError(Exception):
    """Something the person at the keyboard has to mend; the text says what."""
