"""Whatever an error says, or does when it is asked, a text comes of it that can travel."""

import numpy as np
import pytest

import spartan_ng as np_
from spartan_ng.errors import UserFunctionError
from spartan_ng.kernels.user import call_user
from spartan_ng.ops.functions import UserFunction
from spartan_ng.texts import LONGEST, encodable, error_text, shortened_text
from spartan_ng.wire.codec import encode
from spartan_ng.wire.failures import describe_error, rebuild_error
from spartan_ng.wire.messages import JobError
from tests.unspeakable import ERRORS, SAID, raiser


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_of_a_function_names_it_and_travels(name):
    function = UserFunction(raiser(name), "mine.py:1")
    with pytest.raises(UserFunctionError, match=rf"map: raises raised .*{SAID[name]}") as caught:
        call_user(function, "map", np.ones(3))
    assert "mine.py:1" in str(caught.value)
    assert "unspeakable.py" in str(caught.value)
    kind, text = describe_error(caught.value)
    assert len(text) <= LONGEST + 100
    assert encode(JobError("c/1", kind, text))
    assert type(rebuild_error(kind, text)) is UserFunctionError


@pytest.mark.parametrize("name", ERRORS)
def test_every_other_error_can_be_described(name):
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is
        raiser(name)(np.ones(3))
    assert encode(JobError("c/1", *describe_error(caught.value)))


@pytest.mark.parametrize("text", ["", "plain", "\udc80", "a\ud800b\udfff", "é 漢 🙂", "\0"])
def test_only_surrogates_are_escaped(text):
    kept = "".join(c for c in text if not "\ud800" <= c <= "\udfff")
    found = encodable(text)
    found.encode()
    assert found == text if kept == text else found.replace("\\", "").startswith(kept[:1])


@pytest.mark.parametrize("length", [0, 9, 10, 11, 1000])
def test_long_texts_keep_their_ends_and_say_what_went(length):
    text = "".join(chr(65 + i % 26) for i in range(length))
    found = shortened_text(text, 10)
    if length <= 10:
        assert found == text
    else:
        assert found == f"{text[:5]}\n[... {length - 10} characters left out ...]\n{text[-5:]}"


def test_ctrl_c_is_no_text():
    class Pressed(Exception):
        def __str__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        error_text(Pressed())


class Lazy:
    """What a function returns, and what raises only once it is looked at."""

    def __init__(self, name):
        self.raises = raiser(name)

    def __array__(self, dtype=None, copy=None):
        return self.raises(None)


@pytest.mark.parametrize("name", ["plain", "own BaseException", "str raises"])
def test_what_a_function_returns_raises_in_its_name(name):
    with np_.config.override(small_bytes=0):
        mapped = np_.map(lambda tile: Lazy(name), np_.ones((60, 4)), dtype=float)
        with pytest.raises(UserFunctionError, match=rf"map: <lambda> raised {SAID[name]}"):
            mapped.sum().item()

        def generates(extents, tiles):
            yield from raiser(name)(tiles)

        joined = np_.join_update(generates, np_.add, (np_.ones((60, 4)),), (0,), (60, 4), float)
        with pytest.raises(UserFunctionError, match=rf"join_update: generates raised {SAID[name]}"):
            joined.sum().item()
