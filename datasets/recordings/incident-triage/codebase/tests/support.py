"""What tests share."""

from datetime import datetime

from tankline.bus import Bus
from tankline.config import load
from tankline.intake.register import Register
from tankline.labfeed.matcher import Matcher
from tankline.log import Log
from tankline.model import Message, Pickup, Result

MORNING = datetime(2026, 3, 2, 6, 0)


def pickup(id="P-1", bottle="317204", rack="R301", at=datetime(2026, 3, 2, 4, 0), **more):
    values = dict(id=id, at=at, registered_at=at, region="north", tour="N01", truck="T14", compartment=1,
                  farm="F1001", litres=1000, temp_c=4.0, rack=rack, bottle=bottle)
    return Pickup(**{**values, **more})


def result(id="K-1", label="00317204", inhibitor="neg", **more):
    values = dict(id=id, file="K-0600.csv", label=label, bench="1", inhibitor=inhibitor, measured_at=MORNING)
    return Result(**{**values, **more})


def matcher(*pickups, env="prod-north"):
    register = Register()
    for each in pickups:
        register.add(each)
    return Matcher(register, Bus(), Log(), env, load(env))


def handle(machine, *results, at=MORNING):
    return [machine.handle(at, Message(each)) for each in results]
