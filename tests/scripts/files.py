"""Arrays in files: npy, npz, text with and without gaps, raw bytes."""

import io
import os
import tempfile

import numpy as np

where = tempfile.mkdtemp()
a = np.arange(12, dtype=np.int16).reshape(3, 4)
np.save(os.path.join(where, "a.npy"), a)
again = np.load(os.path.join(where, "a.npy"))
print(again.dtype, (again == a).all(), np.array_equal(again, a), sorted(os.listdir(where)))
np.savez(os.path.join(where, "all.npz"), a, second=a.T * 0.5, text=np.array(["x", "yy"]))
with np.load(os.path.join(where, "all.npz")) as archive:
    print(sorted(archive.files), archive["second"].shape, archive["text"], "arr_0" in archive, len(archive))
np.savez_compressed(os.path.join(where, "c.npz"), noughts=np.zeros((50, 50)))
print({name: value.shape for name, value in np.load(os.path.join(where, "c.npz")).items()})

text = io.StringIO()
np.savetxt(text, a / 7, fmt="%.3f", delimiter=",", header="w,x,y,z", comments="# ")
print(text.getvalue(), end="")
print(np.loadtxt(io.StringIO(text.getvalue()), delimiter=",", usecols=(0, 2)))
first, last = np.loadtxt(io.StringIO("1 2\n3 4\n5 6"), unpack=True)
print(first, last, first @ last)
table = "name,height,year\nAda,1.6,1815\nBlaise,,1623\nCarl,1.75,\n"
t = np.genfromtxt(io.StringIO(table), delimiter=",", names=True, dtype=None, encoding="utf-8")
print(t.dtype.names, t["name"], t["height"], np.nanmean(t["height"]), t["year"])
gaps = np.genfromtxt(io.StringIO("1;2;\n;5;6"), delimiter=";", filling_values=-1)
print(gaps, np.isnan(np.genfromtxt(io.StringIO("1 x 3"))))
raw = a.astype(">i4").tobytes()
print(len(raw), np.frombuffer(raw, dtype=">i4").reshape(3, 4)[1], np.frombuffer(b"\x01\x02", np.uint8))
a.tofile(os.path.join(where, "raw"))
print(np.fromfile(os.path.join(where, "raw"), dtype=np.int16)[-3:], np.fromstring("1, 2, 3", sep=","))
print(np.fromiter((i * i for i in range(5)), dtype=float))
