"""A limit on the time that a step may take."""

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OutOfTime(Exception):
    """The time of :func:`time_limit` is over."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` in the main thread if the block takes longer; a running BLAS call is finished first.

    It arrives as an interrupt, which shells let background processes ignore: the block restores the usual handler.
    """
    lock, state = threading.Lock(), {"is_over": False, "is_late": False}

    def interrupt() -> None:
        with lock:
            if not state["is_over"]:
                state["is_late"] = True
                _thread.interrupt_main()

    if seconds <= 0:
        raise OutOfTime
    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        yield
    except KeyboardInterrupt:
        if state["is_late"]:
            raise OutOfTime from None
        raise
    finally:
        with lock:
            state["is_over"] = True
        timer.cancel()
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
