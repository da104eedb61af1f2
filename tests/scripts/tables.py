"""Text tables, groups, and structured arrays."""

import io

import numpy as np

text = "# city,temp,day\n1,20.5,3\n2,18.0,4\n1,21.5,5\n2,nan,6\n3,30,7\n"
data = np.genfromtxt(io.StringIO(text), delimiter=",", comments="#")
for city in np.unique(data[:, 0]):
    rows = data[data[:, 0] == city]
    print(int(city), np.nanmean(rows[:, 1]), len(rows), rows[:, 2].astype(int).tolist())
order = np.argsort(data[:, 1])[::-1]
print(data[order][:, 0])
out = io.StringIO()
np.savetxt(out, data, fmt="%.1f", delimiter=";")
print(out.getvalue())
table = np.zeros(3, dtype=[("name", "U10"), ("age", "i4")])
table["name"] = ["Ann", "Bob", "Cid"]
table["age"] = [30, 25, 41]
print(table[table["age"] > 26]["name"], table["age"].mean(), table[0], table.dtype.names)
print(np.sort(table, order="age")["name"])
