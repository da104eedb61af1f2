"""A Kalman filter in small matrices, and a Markov chain's long run."""

import numpy as np

rng = np.random.default_rng(8)
dt = 0.5
F = np.array([[1, dt], [0, 1]])
H = np.array([[1.0, 0.0]])
Q = 0.01 * np.array([[dt**4 / 4, dt**3 / 2], [dt**3 / 2, dt**2]])
R = np.array([[0.25]])
truth = np.array([0.0, 1.0])
x, P = np.zeros((2, 1)), np.eye(2) * 10
path = []
for step in range(40):
    truth = F @ truth
    z = H @ truth + rng.normal(0, 0.5, 1)
    x = F @ x
    P = F @ P @ F.T + Q
    S = H @ P @ H.T + R
    K = P @ H.T @ np.linalg.inv(S)
    x += K @ (z[:, None] - H @ x)
    P = (np.eye(2) - K @ H) @ P
    path.append((truth[0], x[0, 0], x[1, 0]))
    if step % 10 == 9:
        print(f"{step:3d} {truth[0]:8.4f} {x[0, 0]:8.4f} {x[1, 0]:7.4f} {np.sqrt(P[0, 0]):.5f}")
tracks = np.array(path)
print(tracks.shape, np.sqrt(np.mean((tracks[20:, 0] - tracks[20:, 1]) ** 2)).round(6), K.ravel().round(6))
print(np.all(np.linalg.eigvalsh(P) > 0), P)

weather = ["sun", "cloud", "rain"]
M = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4]])
assert np.allclose(M.sum(axis=1), 1)
state, counts = 0, np.zeros(3, int)
for _ in range(150):
    state = int(np.searchsorted(M[state].cumsum(), rng.random()))
    counts[state] += 1
values, vectors = np.linalg.eig(M.T)
stationary = vectors[:, np.isclose(values, 1)][:, 0].real
stationary /= stationary.sum()
print(dict(zip(weather, counts.tolist(), strict=True)), stationary.round(6))
print(np.abs(np.linalg.matrix_power(M, 50) - stationary).max() < 1e-9, weather[int(np.argmax(stationary))])
N = np.linalg.inv(np.eye(2) - M[:2, :2])
print(N.sum(axis=1).round(6), np.isclose(values, 1).sum(), np.round(np.sort(np.abs(values)), 6))
