records=7
ko=1597
hako=4
case=1
pieces=1789
