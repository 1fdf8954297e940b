records=18
ko=2747
hako=24
case=5
pieces=3707
