"""The text of certificates."""

from gaugeyard.common import due_date, fmt_value, site

HEAD = """\
CALIBRATION CERTIFICATE {number}
Laboratory      Gaugeyard {site}
Customer        {customer}
Instrument      {serial} ({kind})
Day             {day}
Recommended     {due}
Limit           {limit}
"""


def render(number, serial, instrument, lines, day):
    """Return the text of a certificate."""
    from gaugeyard.certificates import KINDS, line_text

    unit = KINDS[instrument.kind]
    head = HEAD.format(
        number=number,
        site=site(),
        customer=instrument.customer,
        serial=serial,
        kind=instrument.kind,
        day=day,
        due=due_date(day, instrument.months),
        limit=fmt_value(instrument.limit, unit),
    )
    table = [f"{'nominal':>10} {'deviation':>16} {'U':>14}  result"]
    table += [line_text(line, unit) for line in lines]
    verdict = "within limits" if all(line[3] for line in lines) else "NOT within limits"
    return "\n".join([head, *table, "", f"Verdict: {verdict}", ""])
