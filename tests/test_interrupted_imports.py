"""Ctrl-C while something is imported for the first time: the next use of it imports it again."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import numpy
import spartan_ng as np

class Interrupts:
    "Ends the import of the k-th module from here on."
    def __init__(self, k):
        self.left = k
    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt(name)

def use(np):
    {use}

def outcome(k, np):
    "Whether the first use came to its end, and what the second raised."
    interrupts = Interrupts(k)
    sys.meta_path.insert(0, interrupts)
    try:
        use(np)
        return True, None
    except KeyboardInterrupt:
        pass
    finally:
        sys.meta_path.remove(interrupts)
    try:
        use(np)
    except Exception as error:
        return False, repr(error)
    return False, None

def of_a_fork(k, np):
    "Each first use in a process of its own."
    reads, writes = os.pipe()
    if not os.fork():
        os.write(writes, repr(outcome(k, np)).encode())
        os._exit(0)
    os.close(writes)
    with open(reads, "rb") as told:
        found = eval(told.read())
    os.wait()
    return found

k, ended = 0, False
while not ended:
    k += 1
    ended, error = of_a_fork(k, np)
    if error:
        print(k, error)
print("interrupted", k - 1)
"""

USES = {
    "generator": "np.random.default_rng(0).random()",
    "legacy": "np.random.rand(); np.random.bit_generator; np.random.mtrand",
    "fft": "np.fft.fft([1, 2])",
    "polynomials": "np.polynomial.Polynomial([1, 2])(3); np.polyfit([1, 2], [3, 4], 1)",
    "linalg": "np.linalg.norm([1, 2]); np.linalg.LinAlgError",
    "masked": "np.ma.array([1, 2])",
    "texts": "np.strings.upper(['a']); np.char.upper(['a'])",
    "computed": "float((np.zeros(5_000_000) + 1).sum())",
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each first use is a fork's")
@pytest.mark.parametrize("name", USES)
def test_a_first_import_that_is_interrupted_is_made_again(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.replace("{use}", USES[name])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("interrupted"), done.stdout + done.stderr
