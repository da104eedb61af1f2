"""Finite differences in place, and linear algebra."""

import numpy as np

nx = 41
dx = 2 / (nx - 1)
nt = 25
dt = 0.025
c = 1
u = np.ones(nx)
u[int(0.5 / dx) : int(1 / dx + 1)] = 2
for _ in range(nt):
    un = u.copy()
    u[1:] = un[1:] - c * dt / dx * (un[1:] - un[:-1])
print(u.round(3))
p = np.zeros((20, 20))
p[:, -1] = np.linspace(0, 1, 20)
err = 1
k = 0
while err > 1e-3 and k < 200:
    pn = p.copy()
    p[1:-1, 1:-1] = 0.25 * (pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1])
    p[0] = p[1]
    p[-1] = p[-2]
    err = np.abs(p - pn).max()
    k += 1
print(k, err, p[10, ::5])
X, Y = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 4))
print(np.hypot(X, Y).shape, np.gradient(p)[0].shape)
A = np.diag(-2 * np.ones(5)) + np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
w, v = np.linalg.eigh(A)
print(w.round(4))
print(np.linalg.matrix_rank(A), np.linalg.det(A).round(6))
with np.errstate(divide="ignore"):
    print(1 / np.array([0.0, 1.0]))
np.set_printoptions(precision=3, suppress=True)
print(np.exp(np.arange(4.0)))
