"""Who comes in between what is compiled: signals, threads, and objects that change what is worked on."""

from __future__ import annotations

import signal
import sys
import threading

import numpy
import pytest

import spartan_ng as np


class Interrupting:
    """An index that is interrupted."""

    def __index__(self):
        raise KeyboardInterrupt


class Rewriting:
    """An index that makes the array another one while it is asked for."""

    def __init__(self, a):
        self.a = a

    def __index__(self):
        with np.config.override(small_bytes=0):
            self.a += 1
        return 1


def test_an_interrupt_goes_through():
    a = np.arange(4.0)
    for ask in (
        lambda: a[Interrupting() :],
        lambda: a.__setitem__(slice(Interrupting(), None), 1),
        lambda: a.__setitem__((slice(Interrupting(), None),), a),
    ):
        with pytest.raises(KeyboardInterrupt):
            ask()
    assert a.tolist() == [0, 1, 2, 3]


def test_an_index_may_change_the_array():
    a = np.arange(4.0)
    assert len(a[Rewriting(a) :].tolist()) == 3
    a[Rewriting(a) :] = 9.0
    assert a.tolist()[0] >= 2


def test_a_signal_comes_between_operations():
    a, came = np.arange(4.0), []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    try:
        for i in range(100):
            a[1:] += a[:-1] * 0.5
            if i == 50:
                signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert came == [1]


def test_threads_write_to_their_rows():
    m, interval = np.zeros((8, 50)), sys.getswitchinterval()

    def work(i):
        row = m[i]
        for j in range(1, 50):
            row[j] = row[j - 1] + 1
            m[i, 0] += 1
            row[1:] *= 1.0

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    sys.setswitchinterval(1e-6)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    numbers = numpy.zeros(50)
    for j in range(1, 50):
        numbers[j] = numbers[j - 1] + 1
        numbers[0] += 1
    assert m.tolist() == [numbers.tolist()] * 8
