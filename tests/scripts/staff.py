"""Structured records written through their fields and elements, sorted, grouped and joined; business days."""

import numpy as np

kind = np.dtype([("name", "U8"), ("age", "i4"), ("pay", "f8"), ("since", "M8[D]")])
staff = np.array(
    [
        ("Ada", 36, 5200.5, "2019-03-01"),
        ("Ben", 41, 4100, "2021-07-15"),
        ("Cy", 29, 3900, "2020-01-31"),
        ("Dee", 36, 4800, "2019-12-24"),
    ],
    dtype=kind,
)
print(staff)
print(staff["name"], staff["age"].mean(), staff.dtype.names, staff.itemsize, staff[1])
staff["pay"][staff["age"] > 35] *= 1.1
staff[2]["name"] = "Cyril"
staff[-1]["age"] += 1
one = staff[0]
one["age"] = 37
print(staff[["name", "age"]], one, one["name"], staff["pay"].round(2), sep="\n")
print(
    np.sort(staff, order=["age", "name"])["name"],
    np.argsort(staff, order="pay"),
    staff[staff["pay"] > 4500].size,
)
new = np.zeros(2, dtype=kind)
new["name"] = ["Eve", "Flo"]
new["since"] = np.datetime64("2022-02-28") + np.arange(2)
staff = np.concatenate([staff, new])
print(staff.shape, staff[-1]["since"], staff["since"].max() - staff["since"].min(), staff == staff[::-1])
for row in staff[:2]:
    print(row["name"].upper(), int(row["age"]), f"{row['pay']:.1f}")
ages, where, counts = np.unique(staff["age"], return_index=True, return_counts=True)
print(ages, where, counts, {str(n): int(a) for n, a in staff[["name", "age"]]})

days = np.arange("2024-12-20", "2025-01-06", dtype="datetime64[D]")
holidays = ["2024-12-25", "2024-12-26", "2025-01-01"]
work = np.is_busday(days, holidays=holidays)
print(work.sum(), days[work][:3], np.busday_count("2024-12-20", "2025-01-06", holidays=holidays))
print(np.busday_offset("2024-12-24", 1, holidays=holidays), np.busday_offset("2024-12-22", 0, roll="forward"))
print((days.astype("M8[M]") - days[0].astype("M8[M]")).astype(int).sum(), days[0].astype(object).weekday())
print(
    np.diff(days[work]).max(),
    np.datetime_as_string(days[:2], unit="M"),
    days.astype("M8[Y]").astype(int)[-1] + 1970,
)
print(
    np.timedelta64(3, "h") / np.timedelta64(30, "m"),
    days[3] < days[4],
    repr(days[0]),
    np.isnat(np.datetime64("NaT")),
)
