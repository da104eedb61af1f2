"""Strings, structured records and objects."""

import numpy as np

names = np.array(["alice", "Bob", "carol", "dave"])
print(names, names.dtype, names.shape, names[1], type(names[1]).__mro__[1].__name__)
print(np.char.upper(names), np.char.add(names, "!"), np.char.str_len(names))
print(np.strings.find(names, "a"), names == "Bob", np.sort(names), names[names > "b"])
print(np.char.join("-", names), np.char.split(np.array(["a b", "c d e"])))
print(np.array(["x", "long word"]).astype("U3"), np.array(["1", "22"]).astype(int) + 1)
people = np.array(
    [("Ann", 31, 55.5), ("Ben", 25, 80.25), ("Cid", 42, 70.0)],
    dtype=[("name", "U10"), ("age", "i4"), ("weight", "f8")],
)
print(people)
print(people["age"].mean(), people[people["age"] > 30]["name"], people.dtype.names)
people["weight"] *= 2
print(people[1], people[1]["name"], np.sort(people, order="age")["name"])
people[0] = ("Zoe", 1, 2.0)
print(people[["name", "age"]])
record = np.rec.array([(1, 2.0), (3, 4.5)], dtype=[("a", int), ("b", float)])
print(record.a, record.b.sum())
objects = np.array([1, "two", [3]], dtype=object)
print(objects, objects[2], len(objects))
print(np.array([[1, 2], [3, 4]], dtype=object) + 1)
print(np.unique(["b", "a", "b"], return_counts=True))
words = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "the", "end"]
w, inverse, counts = np.unique(words, return_inverse=True, return_counts=True)
for word, count in sorted(zip(w, counts, strict=True), key=lambda p: (-p[1], p[0])):
    print(f"{word:>6} {count}")
print(inverse)
print(np.array([True, False]).astype(str), np.array([1.5, 2]).astype("S"))
print(np.array2string(np.array([1.0, 2.5]), precision=3, separator=", "))
print(repr(np.array(["a"])), repr(people[:1]), str(np.str_("q")))
print(np.isin(names, ["Bob", "eve"]), np.where(names == "Bob", "yes", "no"))
letters = np.array(list("hello world"))
print("".join(letters[::-1]), letters[letters != " "].size)
print(np.datetime64("2024-02-28") + np.arange(3), np.array(["2024-01-01"], "M8[D]").astype("M8[M]"))
