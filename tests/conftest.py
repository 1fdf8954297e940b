"""What holds for every test."""

import signal

# Where a shell started the tests in the background, Ctrl-C is ignored, in their processes as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
