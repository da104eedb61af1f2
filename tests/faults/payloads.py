"""What a peer should not send: the kinds that have harmed clusters, and random damage to what it may."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from spartan_ng.ops.functions import UserFunction
from spartan_ng.wire.codec import encode
from spartan_ng.wire.framing import ACCEPTED_BYTES, FRAME_BYTES
from spartan_ng.wire.messages import PROTOCOL, AskStatus, Bye, Hello, JobFinished, Release, Shutdown, Submit
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.port import MOST_GREETING_BYTES, greeting
from spartan_ng.wire.transfers import Fetch, Put, PutShared, Resume, SharedArray
from spartan_ng.wire.values import pack

Frames = list[bytes]


class Trap:
    """Leaves a mark in a folder when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))

    def __call__(self, x: object) -> object:
        """Be a function."""
        return x


def frames(message: Sequence[Buffer]) -> Frames:
    """Frames as bytes."""
    return [bytes(f) for f in message]


def nested(depth: int) -> bytes:
    """msgpack's arrays in arrays."""
    return b"\x91" * depth + b"\xc0"


def the_fifteen(mark: Path) -> dict[str, Frames]:
    """What once ended masters and workers, or ran code in them; `mark` is made if it does again."""
    trap = frames(pack(UserFunction(Trap(mark), "")).frames)
    named = msgspec.msgpack.encode({"u": [f"{mark.stem}:run", "", None]})
    array = SharedArray(1, 0, 1, 1 << 40, 0, np.dtype("f8"), (1 << 30,), (8,))
    return {
        "an empty frame": [b""],
        "one byte": [b"{"],
        "JSON": [b'{"u": [null, "", 0]}'],
        "not UTF-8": [b"\x92\xa4\xff\xfe\xfd\xfc\x01"],
        "an unknown tag": [msgspec.msgpack.encode(["NoSuchMessage", 1, 2])],
        "too few fields": [msgspec.msgpack.encode(["Submit", "job"])],
        "too many fields": [msgspec.msgpack.encode(["Bye", 1, 2, 3])],
        "fields of other types": [msgspec.msgpack.encode(["Release", "abc", {"a": 1}])],
        "deep nesting": [nested(100_000)],
        "a number of frames that are not there": [msgspec.msgpack.encode(["Put", 1, ["c", 1], 1 << 40])],
        "frames that nothing speaks of": [encode(Bye())[0], b"x", b"y"],  # type: ignore[list-item]
        "a function's pickle": trap,
        "a function's name": [named],
        "a long frame": [bytes(ACCEPTED_BYTES + 1)],
        "pieces that do not add up": [b"\xc1" + np.array([1 << 62], "<u8").tobytes(), bytes(10)],
        "a greeting that is too long": [
            frames(greeting(Hello(PROTOCOL, "client")))[0] + bytes(MOST_GREETING_BYTES)
        ],
        "a greeting of two frames": [*frames(greeting(Hello(PROTOCOL, "client"))), b"x"],
        "a greeting without a role": frames(greeting(Hello(PROTOCOL, "master"))),
        "shared memory that is none": frames(encode(PutShared(1, ("c", 1), array))),
        "a channel's header alone": [bytes(17)],
        "a message of another role": frames(encode(JobFinished("c/1", (), ()))),
        "an admin's message": frames(encode(Shutdown())),
    }


def any_message(mark: Path) -> list[Frames]:
    """Right messages, for all ports, to be damaged."""
    values = pack((np.arange(5.0), {"a": (1, None)}, UserFunction(Trap(mark), "")))
    return [
        frames(m)
        for m in (
            greeting(Hello(PROTOCOL, "client", "label")),
            encode(
                Submit("c/1", "k", 1, 1, 1, (("c", 1),), (("c", 2),), True, False, values=values, plan=values)
            ),
            encode(Release((1, 2), ("c/1",))),
            encode(AskStatus()),
            encode(Resume(1, False, 0)),
            [bytes([1, *[0] * 16]), *encode(Fetch(1, ("c", 1), ((0, 5, 1),), True))],
            [bytes([1, 1, *[0] * 15]), *encode(Put(1, ("c", 1), values))],
        )
    ]


def damaged(draw: random.Random, known: Sequence[Frames]) -> Frames:
    """A message with some bytes changed, cut off or doubled, or frames lost or added."""
    message = [bytearray(f) for f in draw.choice(known)]
    for _ in range(draw.randint(1, 4)):
        frame = draw.choice(message)
        match draw.randrange(6):
            case 0 if frame:
                frame[draw.randrange(len(frame))] = draw.randrange(256)
            case 1 if frame:
                del frame[draw.randrange(len(frame)) :]
            case 2:
                frame += draw.randbytes(draw.randint(1, 40))
            case 3 if len(message) > 1:
                message.remove(frame)
            case 4:
                message.insert(
                    draw.randrange(len(message) + 1), bytearray(draw.randbytes(draw.randint(0, 30)))
                )
            case 5:
                frame[:] = frame * draw.randint(2, 3)
    return [bytes(f[: FRAME_BYTES * 2]) for f in message]
