"""A report of some logs: Markdown, a page that needs no network, charts, and all their figures."""
