"""Settings of the laboratory and of its sites."""

import configparser
import json

from gaugeyard.common import ROOT, CalError

CONFIG = ROOT / "config"


def lab(name="lab"):
    """Return the settings of `config/NAME.ini`; those of the site over those of the laboratory."""
    parser = configparser.ConfigParser()
    parser.read(CONFIG / "lab.ini")
    if name != "lab":
        if not parser.read(CONFIG / f"{name}.ini"):
            raise CalError(f"no settings: {name}")
    return parser


def procedures(path=None):
    """Return what `config/procedures.json` says for each kind."""
    path = path or CONFIG / "procedures.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise CalError(f"{path.name}: {error}") from error


def mail_to(kind):
    """Return who hears about something, [] for nobody."""
    return json.loads((CONFIG / "mail.json").read_text(encoding="utf-8")).get(kind, [])
