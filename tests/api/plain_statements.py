"""Statements that small arrays are asked by the million: keys, values, operands and calls."""

from __future__ import annotations


def parts(table: str) -> list[str]:
    """The statements, or parts of them, of a table; `;;` begins a line."""
    return [part.replace(";; ", "\n") for part in table.replace("\n", "|").split("|")]


KEYS = """0|-1|1|99|-99|2**70|True|None|...|()|1.5|'x'|'f0'|:|1:|::-1|::0|99:|0, 1|0, -1|0, 99|99, 0|1:, 0
:, 1|..., 0|0, ...|None, 0|0, None|1:, None, 0|0, 0, 0|1:, 1:|::-1, ::2|..., ...|:, :, :|np.int64(1)
np.uint8(0)|np.int64(99)|np.int64(0), 1|1, np.int64(1)|np.int64(1), 1:|np.bool_(True)|i|[0, 1]|[]|m
i, 0|0, i|[0], [1]|n|n, 0|0, n|Index(1)|Index(1), 0|Index(0):|np.int64(0):np.int64(2)|np.float64(1)
(1,)|0.0, 1|False, 0|t|i[:0]|slice(None, None, None)|Index(99)|-1, -1|..., np.int64(1), None|'a':
1:'b'|np.array(1)|numpy.array(1)|numpy.array([0, 1])|numpy.array([True, False, True])
1:, numpy.array([0, 1])|numpy.array([0, 1]), numpy.array([1, 0])
2**70, 0|:2**70|[1]|[-1, 0]|[99]|[np.int64(1), 0]
[True, 0]|[0, 0]|[2**70]|:, [0, 1]|[0, 1], 0|['f0', 'f1']|'f1'|[0] * 70|[0.5]|[n, 0]|[0, 1], 1:
i, i|i, -i|i + 99, i|m, m|i[:1], i|np.arange(400) % 2, np.arange(400) // 200
np.arange(400), np.arange(400)"""
VALUES = """7|2.5|-1|1j|True|b|b0|a|x|s|n|300|2**70|np.nan|[1, 2]|None|'y'|np.int8(3)
numpy.array(2)|np.zeros(99)|Index(1)|c|b'z'|(1, 2.5)|(1,)|('x', 1)|(x, s)|np.str_('z')|np.bytes_(b'z')|a[0]
np.datetime64('2020-01-02')|np.datetime64('2020-01-02T03:04')|np.timedelta64(70, 's')|b[:2]|a[:2]|b[[1, 0]]
a[..., :1]|{}|y|y[:2]|y.T|[1, 2, 3, 4]|(s, x)|[True, 2.5]|[0.5, 300]|[1j, 2]|[2**70, 1]|[np.nan, 1]
[[1, 2, 3, 4]]|[x] * 6|[7] * 40|(7,) * 3|[np.int8(3), 1]|numpy.array([1.5, 2.5])"""
OPERANDS = """7|2.5|-1|1j|True|b|x|s|n|300|2**70|0|[1, 2]|None|'y'|np.int8(3)|numpy.float32(3)
numpy.array(2)|np.zeros(99)|Weird()|Told()|c|p|a|b[..., :1]|numpy.ones(1)|b'1'|np.str_('1')|np.bytes_(b'1')
np.datetime64('1970-01-02')|np.timedelta64(1, 's')|np.datetime64('nat')|np.array(['1', '2'])
y|y[..., :1]|y.T|numpy.arange(3)|[True, 2.5]|(1, 2.5, 3)|[[1], [2.5], [3]]|[s, 1]|[2**70, 1]|[[1], [2, 3]]
[]|[1j, 2]|[None, 1]|(x, x)|[1, 2, 3, 4]|[numpy.int8(1)]|[7] * 5000|([1, 2, 3, 4],) * 3"""
OPERATORS = [
    *["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]
]
IN_PLACE = [o for o in OPERATORS if o not in ("<", "<=", "==", "!=", ">", ">=")]
CALLS = """r = s * 2.0|r = s * 3|r = 2 ** 60 + s|r = s + 2 ** 53|r = s - 2 ** 70|r = s / 0
r = s / s|r = 0.0 / s
r = s * s|r = -s|r = +s|r = abs(-s)|r = s * 1e308 * 10|r = s * 1e-320 * 1e-9|r = s - s|r = s * 0
r = -s * 0.0|r = s + np.nan|r = s / np.inf|r = s * True|r = s + None|r = s * [1]|s *= [1]|s *= 2; r = s
s += x; r = s|r = x - s|r = x / s|r = s == x|r = s < 1|r = s + numpy.float32(1)|r = s + numpy.int64(1)
r = s + 1j|r = s // 2|r = s % 2|r = 7 % s|r = s ** 2|r = 2 ** s|r = [1, 2] * s|r = s + a|r = a - s
r = s + Weird()|r = s * Told()|r = s + n|r = n * s|r = round(s, 1)|r = int(s), float(s), bool(s), hash(s)
r = str(s), repr(s)|r = a[int(s)]|with np.errstate(all='raise'): r = s / 0
with np.errstate(all='raise'): r = s * 1e308 * 10|r = np.dot(a, b)|r = np.dot(s, a)|r = np.maximum(a, s)
r = np.maximum(s, x)|r = np.append(a, b)|r = np.nonzero(a)|r = np.take(a, i)|r = np.argmax(a)
r = np.mean(a)|r = np.where(a > 0, a, b)|r = np.clip(a, 0, 1)|r = np.sort(a)|r = np.trace(a)
r = np.cumsum(a)|r = np.tril(a)|r = np.any(a)|r = np.isin(a, b)|r = np.union1d(a, b)|r = np.sqrt(a)
r = np.add(a, b, a)|r = np.add(a, b, out=b); q = b; r = q|r = np.multiply(a, s, a)|r = np.add(a, 1, b[::-1])
np.sqrt(a, a); r = a|r = np.add(b0, 1, a)|r = np.add(a, b0, b)|r = np.add(a, b, b0)|r = np.exp(2.5)
r = np.exp(True)
r = np.add(2 ** 70, 1)|r = np.add(s, 2.0, a)|r = np.maximum(a, b, b)|r = np.maximum(a, b, out=b)
r = np.add(a, 1, (b,))|r = np.add(a, 1, out=(b,))|r = np.add(a, b, None)|r = np.add(a, b, ...)
r = np.equal(a, b, m)
q = a[:]; np.negative(a, a); r = q|with lazily(np): q = a + b;; np.add(a, 1, a); r = q
r = np.divmod(a, 2, a, b)
with lazily(np): q = a[:1] * 2;; np.add(a, 1, out=a); r = q|r = np.add(a[1:], 1, a[:-1])
r = np.add(a, 1, numpy.ones(3))
a.setflags(write=False); r = np.add(a, 1, a)|r = np.add(a, 1, a, out=b)|r = np.add(a, 1, out=None)
with np.errstate(all='raise'): r = np.divide(a, 0, a)|r = np.exp(x)|r = np.sqrt(s)|r = np.add(s, 1)
r = np.add(a)|r = np.add(a, b, b)|r = np.dot(a)
r = np.add(a, np.zeros(99))|r = np.dot(a, np.zeros(99))|r = np.arctan2(a, s)
r = np.isnan(a)|r = np.modf(a)|r = np.where(a)|r = np.compress(m, a)|r = np.outer(a, a)
r = np.array([a, b])|r = np.array([a, [s]])|r = np.array([[a], [b]])|r = np.array([a, 'x'])
r = np.array([s, x])|r = np.array([])|r = np.array(['a', 'b'])|r = np.array([a, a[:1]])|r = np.copy(a)
q = np.copy(a); q[...] = 5; r = a|r = np.outer(a, b)|r = np.meshgrid(a, b)
r = np.meshgrid(a, b, indexing='ij')|r = np.copy(s)|r = np.meshgrid(a, copy=False)
r = np.einsum('i,i', a, a)|r = np.einsum('...->...', a)|r = np.einsum('ij,jk', a, b)
r = np.einsum('ij->i', a)|q = np.einsum('ii->i', a); q[...] = 7; r = a|r = np.einsum('ij', a)
r = np.einsum('ij,ij->j', a, b)|r = a.swapaxes(0, 1)|r = a.swapaxes(0, -1)|r = a.swapaxes(0, 0)
q = a.swapaxes(0, 1); q[...] = 6; r = a|r = a.swapaxes(5, 0)|r = a.transpose(0)|r = a.transpose(1, 0)
r = a.transpose((0, 1))|r = a.transpose((0, 0))|r = a.transpose(-1, 0)|r = np.transpose(a, (1, 0))
q = np.transpose(a, (0,)); q[...] = 4; r = a|r = a.transpose(True, False)
r = np.concatenate([a, b])|r = np.concatenate((a, [s]))|r = np.concatenate([a, b], axis=-1)
r = np.stack([a, x])|r = np.concatenate([])|r = np.vstack([a, a[:1]])|r = np.concatenate([a, [b]])
r = np.concatenate(a)|r = np.hstack((a, s))|r = np.concatenate([a, b], out=a)
r = np.concatenate([a, a], dtype='f4')|r = np.concatenate([a, Told()])|r = np.sum(a, 0)
r = np.sum(a, axis=-1, keepdims=True)|r = np.sum(a, out=b)|r = np.sum([a, a])|r = np.sum(a, axis=9)
r = a.sum(0, 'f4')|r = a.sum(axis=None)|r = a.max(axis=(0,))|r = a.sum(where=m)|r = a.std(ddof=1)
r = a.all(keepdims=1)|r = a.argmax(5)|r = a.argmin(axis=0)|r = a.mean('x')|r = a.var(0, None)
r = a.cumsum(axis=-1)|r = a.nonzero()|r = a.nonzero(1)
r = np.unique(a, return_index=True)|r = np.unique(a, True)|r = np.sort(a, kind='stable')
r = np.argsort(a, axis=None, kind='stable')|r = np.argsort(-a, kind='stable')
r = np.lexsort((a, b))|r = np.searchsorted(a[0], [s])
r = np.median(a)|r = np.bincount([1, 2])|r = np.bincount(a)|r = np.diff(a, n=2)|r = np.diff(a, 2, -1)
r = np.take(a, [0, 1])|r = np.take(a, [[0]], 0)|r = np.take(a, 'x')|r = np.isclose(a, b, 1e-3)
r = np.isclose(a, b, atol=1)|r = np.allclose(a, [s])|r = np.where(m, a, [1])|r = np.where(a, 'x', 'y')
r = np.where(a, b)|r = np.dot(a, [1, 2])|r = np.round(a, decimals=1)|r = np.zeros(3)
r = np.zeros((2, 0), int)|r = np.zeros(-1)|r = np.zeros(2 ** 70)|r = np.zeros((2, s))
r = np.zeros(3, dtype='S3')|r = np.ones((2,), bool)|r = np.ones(shape=2)|r = np.full(2, s)
r = np.full((2, 2), [1, 2])|r = np.full(2, 3, 'i2')|r = np.isfinite(np.empty(3))
r = np.empty((1, 2), int) * 0|r = np.zeros([2, 3])|r = np.zeros((2, 3), order='F')
r = np.zeros(3, float, 'C')|r = np.zeros(3, like=a)|r = np.zeros(3, device='cpu')|r = np.zeros(True)
r = np.zeros('3')|r = np.arange(5)|r = np.arange(1, 5, 2)|r = np.arange(5, 1, -2)|r = np.arange(0.0)
r = np.arange(1, 2, 0)|r = np.arange(s)|r = np.arange(1, 3, 0.5)|r = np.arange(float('nan'))
r = np.arange(2 ** 70)|r = np.arange(3, dtype='f4')|r = np.arange('3')|r = np.arange(1e300)
r = np.arange(np.int64(5))|r = np.arange(np.uint8(2), np.float64(7.5))|r = np.arange(a.size)
r = np.arange(np.float32(3))
r = np.arange(a.sum())|r = np.arange(x, x + 3)|r = np.arange(np.int64(3), dtype='f4')
r = np.arange(np.int64(-2))
r = np.repeat(a, 2)|r = np.repeat(a, 0)|r = np.repeat(a, -1)|r = np.repeat(a, 2, 0)
r = np.repeat(a, 2, axis=-1)
r = np.repeat(a, 2, 9)|r = np.repeat(a, [1] * len(a), 0)|r = np.repeat(a, np.arange(len(a)), 0)
r = np.repeat(s, 3)
r = np.repeat(a, np.arange(a.size))|r = np.repeat(np.arange(3), np.arange(3) - 1)|r = np.repeat(a, 2 ** 70)
r = np.repeat(np.arange(3), np.arange(2))|r = np.repeat(a, np.int64(2))|r = np.repeat(a, 1.5)
r = np.repeat([1, 2], i)
r = a.repeat(2)|r = np.repeat(a, np.arange(2, dtype='u1'))|r = np.repeat(a, [])|r = np.repeat(a, True)
r = a.astype(float)|r = a.astype(int)|r = a.astype('i4')|r = a.astype(np.uint8)|r = a.astype(np.dtype('f4'))
r = a.astype(bool)|r = a.astype(complex)|r = a.astype(a.dtype)|r = a.astype(object)|r = a.astype('S4')
r = a.astype('nono')
r = a.astype(np.dtype('>f8'))|r = a.astype(float, copy=False)|r = a.astype(a.dtype, copy=False)
r = a.astype(str)
r = a.astype(int, 'F')|r = a.T.astype(float)|r = a.astype(int, casting='safe')|r = a.astype()
r = a.astype(None)
r = a.astype(np.float16)|r = a.astype(np.longdouble)|r = a.astype(np.number)|r = a.astype('M8[D]')
r = a[::2].astype(float)
r = np.zeros(3, np.uint8)|r = np.ones((2, 3), np.dtype(int))|r = np.full(2, s, np.float32)
r = np.zeros(2, np.str_)
r = np.arange(True)|q = np.asarray(a); q[...] = 2; r = a|r = np.asarray(a) is a|r = np.asarray(s)
r = np.asarray([1, 2.5])|r = np.asarray((1, True))|r = np.asarray([a, b])|r = np.asarray([])
r = np.asarray(3.5)|q = np.asarray(4); q[...] = 5; r = q|r = np.asarray(2j)|r = np.asarray(True)
r = np.asarray(2 ** 70)|r = np.asarray('x')|r = np.asarray(['a', 'b'])|r = np.asarray([[1], [2, 3]])
r = np.asarray(np.float32(2))|r = np.asarray(None)|q = np.array(4.5); q[...] = 5; r = q
r = np.array(True)|r = np.array(2 ** 63)|r = np.array(np.int8(3))|r = np.array(s)
q = np.array(s); q += 1; r = s|r = np.array('x')|r = np.array(None)|r = np.array(a[0])
r = np.array(float)|r = a[None]|r = a[...]|q = a[None]; q[0] = 3; r = a|q = a[...]; q += 1; r = a
a[...] = 2; r = a|a[None] = b; r = a|a[...] = a[::-1]; r = a|a[None] = s; r = a|r = a[..., None]
r = s[...]|r = s[None]|r = a[0][...]|a[...] = 'x'; r = a|r = np.array(1.0)[...]
q = np.array(1.0); q[None] = 3; r = q|r = np.array(1.0)[None]|r = a[...] is a|r = a[i][None]
r = np.asarray(a, 'f4')|r = np.asarray(a, copy=True) is a|r = np.asarray(a[1:])
with lazily(np): q = a + b;; r = np.sum(q)|with lazily(np): q = a + b;; r = np.concatenate([q, a])
q = np.concatenate([a]); q[...] = 7; r = a|a.setflags(write=False); r = np.concatenate([a, a])
with np.errstate(all='raise'): r = np.mean(a / 0)|r = np.meshgrid(a, b)|r = np.linalg.solve(a, a)
r = np.linalg.inv(a)|r = np.fft.fft(a)|r = np.histogram(a)|r = np.interp(0.5, [0, 1], [1, s])
r = np.broadcast_arrays(a, s)|r = np.split(a, 1)|r = np.array_split(a, 2)
r = pickle.loads(pickle.dumps(np.sum)) is np.sum
r = np.linalg.norm(a)|r = np.flip(a)|r = np.array_equal(a, b)|r = a.copy()|r = a.copy('F')
r = a.copy(order='K')|r = a.copy(1)|r = a.copy(axis=1)|r = a.T|r = a.T.T|a.T[...] = 3
r = a[1:].T; a[...] = 2|q = a.T; r = q[0]; q[0] = 2|r = a.shape|a.shape = (2, -1); r = a|a.shape = 99
del a.shape|a.dtype = 'i8'; r = a|a.dtype = 'u1'|del a.dtype|a.ndim = 1|a.size = 2|del a.size
a.T = 1|a[i] += 1|a[i] = a[i][::-1]|a[i, i] = b0|a[m] *= 2|r = a[i][0]|r = a[i, i]
r = a[:, i]|r = a[i, :]|r = a[i, None]|r = a[m, 0]|r = a[m, m]|r = a[i, t]|r = a[t, t]|r = a[i > 5]
a[:, i] = 1|a[t, i] = 5|a[i, 1:] = 2|a[99 + i] = 1|r = a[99 + i]|r = a[i * 1.0]|a[i * 1.0] = 2|r = a[-i]
r = a[m[:2]]|a[m[:2]] = 1|with lazily(np): q = a + b;; a[i] = 1; r = q|q = a[i]; a[i] = 9; r = q
q = a[...]; q[i] = 9; r = a + 0|a[i] = a|a[a > 0] = s|a[0] = s|r = -a|r = +a|r = abs(a)|r = ~a|r = len(a)
r = list(a)|r = [*a][:1]|r = bool(a)|r = a.T[0]|r = a[0][0]|r = a[1:][::-1][:2]
r = hash(a) if a.ndim or a == a else 0
r = a[0] + a[1]|r = a[:2] + a[-2:]|a[0], a[1] = a[1], a[0]|a[0] -= 1|a[0, 0] += 2|a[1:] *= 2
a[...] = a[::-1]|a += a[::-1]|a -= a|r = a[0]; r += 1|r = a[0]; r[0] = 1|r = a[1:]; r[...] = 3; del r
for _ in range(20): a = a[::-1]|for _ in range(20): a = a[...]|for _ in range(18): a = a[...]; a[...] = 5
r = a @ a|r = a @ a.T|r = a[0] @ a[0]|r = divmod(a, 2)|r = pow(a, 2, 3)|r = pow(a, 2)|r = 2 ** a|a **= 2
r = a ** 0.5|r = a ** -1|r = a ** 3|del a[0]|r = a.__getitem__(0)|r = a.__setitem__(0, 1)
r = a.__add__(1)|r = a.__radd__('x')|r = a.__iadd__(1)|r = a.__len__()|r = type(a).__mul__(a, 2)
r = a.__add__(Weird())|r = a.__eq__(None)|r = a == 'x'|r = a != None|r = np.add(a, b)|r = np.add(1, a)
r = numpy.multiply(x, a)|r = numpy.multiply(a, a)|r = numpy.add(a, 1, dtype='f8')
r = numpy.add(a, b, out=b)|r = numpy.sqrt(a)|r = numpy.divmod(a, 2)|r = numpy.add.reduce(a)
r = numpy.matmul(a, a)|r = a[0] == a[0]|with np.errstate(all='raise'): r = a / 0
with np.errstate(all='raise'): a[0] = 1; a /= 0|with np.errstate(all='ignore'): r = a / 0|r = a / a
r = a // 0|r = a % 0|q = a[...]; a[0] = 9; r = q|q = a[:1]; q[0] = 9; r = a + 0
q = a[1:]; del a; q[0] = 4; a = r = q|r = a[np.arange(1)]|r = a[a == a]|a[a == a] = 1|r = a[a > 0]
a[a > 0] -= 1|r = a.shape, a.dtype, a.ndim, a.size|r = numpy.asarray(a)[:1]
with lazily(np): q = a + b;; a[0] = 1; r = q|with lazily(np): q = a[1:] * 2;; a[...] = 1; r = q
with lazily(np): q = a[...];; a += 1; r = q|with lazily(np): q = np.copy(a);; a[1:] -= 1; r = q
with lazily(np): a[0] = 3;; r = a[0]|with lazily(np): a += 1;; a[0] = 3; r = a
r = a.setflags(write=False); a[0] = 1
q = a[1:]; q.flags.writeable = True; np.putmask(a, a == a, b); a *= 2; q[...] = q + 1; r = a
q = a[:]; a.setflags(write=False); q[0] = 1|r = a.copy()[0]
r = a.ravel()[0]|a.flat[0] = 1; r = a[0]|a.fill(1); r = a[0]|a.shape = -1; r = a[0]
r = a.reshape(-1)[0]; a[...] = 1|q = a.T; q[0] = 1; a[0] += 1|r = np.dot(a, a)|r = a.real[0]
a[[0, 1]] = a[[1, 0]]|a[[0, 1]] = a[:2]|a[[1, 0]] = a[:2]|a[[0, 0]] = b[:2]|q = a['f0']; q[0] = 5; r = a
r = a['f1'][0]|a['f1'][1] = 2.5|a['f0'][1:] = 3|r = a[0]; a[0] = (1, 2.0)|r = a[0]['f0']|a[0]['f0'] = 3
r = a[0]; a['f0'] = 7|with lazily(np): q = a['f0'];; a[0] = (7, 1.5); r = q|a['f0'] += 1
r = a['f0'].base is a
r = a[1:]['f0'][0]; a[0] = a[1]|q = a[0]; a[0] = b[0]; r = q|r = a[..., 0]|r = a[0, ...]
r = a.conj()|r = a.conj() is a|r = a.conjugate()|q = a.conj(); q[...] = 1; r = a
np.put(a, [0, 1], 1); r = a|np.put(a, 0, 2.5); r = a|a.put([0, -1], [1, 2])|np.put(a, [0, 99], 1); r = a
np.put(a, [1, 0], [1j, 2]); r = a|np.put(a, i, b); r = a|np.put(a, [0.5], 1)|np.put(a, [1], a)
np.put(a, [99, 1], 3, 'wrap')|np.put(a, [0], [])|np.put(a, i, s)|np.put(a, [True, False], 2)
a.put(i, 300)|with lazily(np): q = a + b;; np.put(a, [0], 7); r = q|q = a[...]; np.put(a, [0], 7); r = q
a.flat[1] = 7; r = a|a.flat[-1] = 2.5|a.flat[99] = 1|r = a.flat[2]|r = a.flat[-1]|r = a.flat[99]
a.flat[0] = 1j|a.flat[0] = 300|a.flat[0] = s|a.flat[0] = x
with lazily(np): q = a * 1;; a.flat[0] = 5; r = q|q = a[...]; a.flat[0] = 5; r = q|np.copyto(a, 1)
np.copyto(a, 2.5)|np.copyto(a, 2.5, 'unsafe')|np.copyto(a, b)|np.copyto(a, b0)|np.copyto(a, s)
np.copyto(a, 1j)|np.copyto(a, np.zeros(99))|with lazily(np): q = a * 1;; np.copyto(a, 5); r = q
q = a[...]; np.copyto(a, 5); r = q|np.copyto(a, x, casting='safe')|np.copyto(a, 300)|np.copyto(a, None)
np.copyto(a, 2, where=m)|np.copyto(a, b, where=a > b)|np.copyto(a, b, 'unsafe', m[:1])
np.copyto(a, 1, where=i)
np.copyto(a, s, where=False)|with lazily(np): q = a * 1;; np.copyto(a, 5, where=m); r = q
np.copyto(a, x, where=x)
r = np.add.reduce(a)|r = np.maximum.reduce(a, -1)|r = np.add.reduceat(a, i)|r = np.add.accumulate(a, axis=0)
r = np.maximum.reduce([a, b])|r = np.add.reduce([a, a, b], axis=1)
r = np.add.accumulate([a[1:], a[:-1]])|r = np.multiply.reduceat([b, a], i)
r = np.multiply.reduce(a, axis=(0, 1), keepdims=True)|r = np.logical_and.reduce(a, None)
r = np.add.reduce(a, 9)
r = np.subtract.accumulate(a)|r = np.minimum.reduceat(a, [0, 1], -1)|r = np.add.reduceat(a, 99 + i)
r = np.array(['a', 'bc'])|r = np.array(['a', 1])|r = np.array(['a', s])|r = np.array(['a', a])
r = np.array(['', 'é'])|r = np.array(['a'], 'S1')|r = np.array([['a', 'b'], ['c', 'd']])
r = np.array(['1'] * 5, float)
r = round(a[0])|r = x * a|r = s * a|r = x - a|r = numpy.int8(2) * a|r = numpy.float32(2) ** a|r = x < a
r = x @ a|x += a; r = x|r = np.sin(y)|r = np.add(y, a)|r = np.add(a, y, a)|r = np.add(y, y)
r = np.add(y, y, out=a)|r = np.add(a, 1, out=y)|r = np.sum(y)|r = np.max(y, axis=0)|r = np.mean(y, -1)
r = np.where(y, y, a)|r = np.ravel(y)|q = np.ravel(y); q[...] = 3; r = y
r = np.transpose(y)|r = np.transpose(y, (1, 0))|r = np.array(y)|q = np.array(y); q[...] = 3; r = y
r = np.asarray(y)|q = np.asarray(y); q[...] = 3; r = y|q = np.asarray(y); q[...] = 3; r = q
r = np.atleast_2d(y)|r = np.broadcast_arrays(y, y)|r = np.broadcast_arrays(y, s)|r = np.split(y, 1)
r = np.meshgrid(y, a)|r = np.concatenate([y, a])|r = np.stack([y, a])|r = np.dot(y, a)|r = y @ a|r = a @ y
r = np.linalg.norm(y)|r = np.zeros_like(y)|r = np.zeros_like(a)|r = np.ones_like(a)|r = np.ones_like([1, x])
r = np.zeros_like(s)|r = np.zeros_like('a')|r = np.empty_like(a).shape|r = np.copy(y)|r = np.squeeze(y)
q = np.squeeze(y); q[...] = 3; r = y|r = np.clip(y, 0, 1)|r = np.real(y)|r = np.argsort(y, kind='stable')
r = numpy.asarray(a, 'f8') + 0|r = numpy.array(a, copy=True)
r = numpy.array([a, a])|q = numpy.asarray(a); q[...] = 3; r = a|r = numpy.abs(a)|r = numpy.isfinite(a)
r = numpy.where(a, a, y)|r = numpy.maximum(a, y)|r = numpy.matmul(y, a)|r = numpy.dot(y, a)|y += a; r = y
y[...] = a; r = y|r = y[i]|r = numpy.power(a, 2)|r = numpy.sqrt(y, out=a)|r = np.sqrt(y)
with np.errstate(all='raise'): r = np.divide(y, 0)|r = np.linalg.solve(y, a)|r = np.array([y, y])
r = np.array([a[0], -a[1]])|r = np.array(a, float)|r = np.array([s, 1], dtype=int)|r = np.array([1j], float)
r = np.array([x, s], dtype=np.float32)|r = np.array(y, complex)|r = np.array([300], dtype=np.int8)
r = np.array(a, None)|r = np.array([1, 2], bool)|r = np.array(['1', 2], float)|r = np.array(x, int)
r = np.array([a, b], dtype=float)|r = np.array([1, 2], dtype='f4')|r = np.array([1, 2], object)
r = np.array(3, dtype=np.int8)|r = [x + 1 for x in a]|for q in a: q += 1
q = iter(a); r = next(q); a[...] = 1; r = r, list(q)|r = list(zip(a, a.T))
with lazily(np): q = a + b;; r = [*a, *q]|q = iter(a[:2]); del a; r = a = list(q)
q, *r = a|r = [*np.array([])]
a[...] = [a[0], a[1]]; r = a|a[0] = a.tolist(); r = a|a[[0, 1]] = 1, x; r = a
a[m] = [1, 2]; r = a|a[0, :2] = s, s; r = a|a[::2] = [s, 1]; r = a
with lazily(np): q = a + b;; a[:2] = 1, 2; r = q
r = np.modf(a)|r = np.frexp(a)|r = divmod(a, b)|r = np.divmod(a, b0)|r = np.add(a, b, dtype=float)
r = np.add(a, b, dtype='f4', casting='unsafe')|r = np.add(a, b, where=m, out=b); q = b
r = np.negative(a, where=a > b, out=a)|r = np.add(a, b, out=a, where=m)|r = np.add(a, b, casting='no')
r = np.add.reduce(a, where=m, initial=1)|r = np.add.reduce(a, dtype=float, keepdims=True)|r = np.add.reduce(x)
r = np.add.reduce(a, 0, None, b0); q = b0|r = np.add.outer(a, b)
q = y + 0; r = np.add.reduce(y, -1, None, b[..., 0]); r = b|r = np.multiply.outer(a, x)
r = np.add.reduceat(a, [0, 1], axis=-1)
np.place(a, a > b, [1, 2]); r = a|np.place(a, m, b); r = a|np.place(a, a == a, []); r = a
q = a[...]; np.place(a, a > b, s); r = q|with lazily(np): q = a * 1;; np.putmask(a, a > b, b); r = q, a
np.putmask(a, a > b, y); r = a|np.putmask(a, m, x); r = a|np.put_along_axis(a, 0 * t, 1, 0); r = a
np.fill_diagonal(a, 1); r = a|np.fill_diagonal(a, b); r = a|np.fill_diagonal(a, x, wrap=True); r = a
np.copyto(a, a[::-1]); r = a|np.copyto(a, b, where=m, casting='unsafe'); r = a
r = a.choose([b, y])|r = np.choose(i, [a, b])|r = np.choose(0 * a, (a, b))
r = np.choose(i, [1, x], mode='clip')
r = a.compress([True, False])|r = np.compress(m, a, 0)|r = a.compress(m, axis=-1)|r = a.byteswap()
r = a.clip(0, 1)|r = a.clip(max=b)|r = a.clip(b, a)|r = a.round(1)|r = a.round()|r = a.argsort()
r = a.argsort(axis=0, kind='stable')|r = a.argpartition(1)|r = a.argpartition(0, -1)
r = a.argpartition([0, 1])
r = np.tile(a, 2)|r = np.tile(a, (2, 1))|r = np.tile(a, [2])|r = np.tile(a, 1); r[...] = 3; q = a
r = np.tile([1, 2], 2)|r = np.tile([[1], [2.5]], (2, 2))|r = np.tile([], 2)|r = np.tile([[1, 2], [3]], 2)
r = np.tile((1, 2), 0)
r = np.repeat([1.5, 2], [3, 1])|r = np.repeat([1, 2], [1, -1])|r = np.repeat([1, 2 ** 70], 2)
r = np.repeat((1, True), (2, 1))
r = np.repeat([[1, 2], [3, 4]], [2, 0], axis=1)|r = np.repeat([1, 2], [True, False])
r = np.repeat([1, 2], [1.0, 2.0])
r = np.diag([1.5, 2.5])|r = np.diag((1, 2), -1)|r = np.diag([[1, 2], [3, 4]])|r = np.diag([])
r = np.diag([True, 2j])|r = np.diag([1, 2], 1.5)
r = np.diagflat([1, 2], 1)|r = np.diagflat([[1, 2], [3, 4]])|r = np.vander([1, 2.5])|r = np.vander([[1, 2]])
r = np.isscalar(a)|r = np.isscalar(2.5)|r = np.isscalar('a')|r = np.isscalar(a.sum())|r = np.isscalar(None)
r = np.isscalar([1])|r = np.isscalar(np.float32(1))
r = np.resize(a, 5)|r = np.resize(a, (2, 2))|r = np.diag(a)|r = np.diag(a, 1)|r = np.vander(a)
r = np.diagflat(a, -1)|r = np.vander(a, 3, increasing=True)|r = np.eye(3, k=1)|r = np.eye(2, 4, dtype=int)
r = np.identity(3)|r = np.tri(3, 4, 1)|r = np.full_like(a, 2)|r = np.full_like(a, b)
r = np.full_like(a, x, dtype=int)
r = np.maximum(a[..., None], b[..., None, :])|r = a[..., None] * b[..., None, :]|r = np.hypot(a[:1], b)
r = np.subtract(a, b.T)|r = np.arctan2(a[..., :1], y)|r = np.tensordot(a, b, axes=(-1, 0))
r = np.tensordot(a, a, axes=a.ndim)|r = np.tensordot(a, b, ([0, 1], [1, 0]))|r = np.tensordot(a, b, -1)
r = np.shape(x)|r = np.ndim(x)|r = np.size(s)|r = np.expand_dims(x, 0)|r = np.reshape(x, (1, 1))
r = np.squeeze(x)|r = np.transpose(s)|r = np.ravel(x)|r = np.broadcast_to(x, (2, 2))|r = np.atleast_2d(s)
r = np.squeeze(s, 0)|r = np.shape(2.5)|r = np.ndim(True)|r = np.size(3j)|r = np.expand_dims(2, (0, 1))
r = np.squeeze(2.5)|r = np.transpose(1j)|r = np.ravel(3)|r = np.expand_dims(s, 1)|r = np.reshape(2, (2,))
r = np.expand_dims(x, 0); r[0] = 9; q = x|r = np.flip(x)|r = np.swapaxes(x, 0, 0)|r = np.moveaxis(s, (), ())
r = a[i.max(), i]|r = a[i, i.min()]|a[i, i.min()] = 2; r = a|r = a[i[0], i]|r = a[i, numpy.int64(0)]
a[i.min(), i] += 1; r = a|r = a[m[..., 0], i.max()]|r = a[i, i.max() - 9]|r = a[i, m.any()]|r = a[i, x]
r = np.asarray(a, dtype=float)|r = np.asarray(a, float)|r = np.asarray(b, a.dtype)|r = np.asarray(a, int)
r = np.asanyarray(a) is a|r = np.asanyarray(x, 'f4')|r = np.asanyarray([1, 2.5], complex)
r = np.asarray(a, None)|r = np.array(a, copy=True)|r = np.array(a[::-1], copy=True); r[...] = 1; q = a
r = np.asanyarray([[1], [x]])
r = a.astype(float, copy=False)|r = a.astype(a.dtype, copy=False)
r = np.asarray([1, 2], dtype=float)|r = np.asarray((x, 1), float)|r = np.asarray([1.5], int)
r = np.astype(a, float)|r = np.astype(a, np.float32)|r = np.block([[a, b], [b, a]])|r = np.block([a, 1])
r = np.select([a > b, m], [a, b], 0)|r = np.select([a > b], [1.5])|r = np.select([m, m], [a, [1, 2, 3]])
r = str(np.result_type(a, b, 1))|r = np.can_cast(a.dtype, float)|r = str(np.min_scalar_type(a))
r = np.common_type(a, b)|r = np.tensordot(a, b, 1)|r = np.tensordot(a, b, ([0], [0]))
r = np.tensordot(a, b, 0)
r = np.linspace(a, b, 3)|r = np.linspace(0, s, 4)|r = np.linspace(0, 1, 5, retstep=True)
r = np.linspace(x, 9, num=4)
r = np.geomspace(1, 9, 3)|r = np.logspace(0, s, 3, base=2)
r = np.linspace(0, 1, num=3, endpoint=False, dtype=int)
r = np.imag(a)|q = np.imag(a); q[...] = 3; r = a|r = np.trim_zeros(a)|r = np.apply_along_axis(np.sum, 0, a)
r = np.apply_along_axis(lambda line: line[::-1], -1, a)
np.apply_along_axis(lambda line: line.fill(1), 0, a); r = a
r = np.linalg.multi_dot([a, b, a])|r = np.asfortranarray(a)|r = np.indices((2, 3))|r = np.hanning(5)
r = np.kaiser(4, x)
r = np.fft.fftfreq(5, d=x)|r = np.histogram_bin_edges(a, 3)|r = np.iscomplexobj(a)|r = np.isrealobj(a)
r = np.matvec(a, b) * 1|r = np.vecdot(a, y)|r = np.vecmat(a, b) * 1|r = np.matmul(a, y)
r = a @ b[..., None]|r = np.stack([a, a]) @ b
r = np.char.add(a, b)|r = np.char.upper(a)|r = np.strings.str_len(a)|r = np.strings.find(a, '1')
r = np.char.equal(a, a)
r = np.add(a, np.timedelta64(1, 's'))|r = a - a[0]|r = 2 * a - a|r = np.isnat(a)|r = np.datetime_as_string(a)
r = np.is_busday(a)|r = np.busday_count(a, b)|r = np.busday_offset(a, 1, roll='forward')
r = np.vectorize(lambda v: v)(a)|r = np.frompyfunc(lambda v, w: v, 2, 1)(a, b)
r = np.vectorize(lambda v: (v, 1))(a)
a['f0'] = 7; r = a|a['f1'] += 1; r = a|a['f0'] = a['f1']; r = a|a['f1'] = [1] * 99
r = a['f0']; r[...] = 2; q = a"""

STATEMENTS = (
    [f"r = a[{k}]" for k in parts(KEYS)]
    + [f"a[{k}] = {v}" for k in parts(KEYS) for v in parts(VALUES)]
    + [f"r = a {o} {v}" for o in OPERATORS for v in parts(OPERANDS)]
    + [f"r = {v} {o} a" for o in OPERATORS for v in parts(OPERANDS)]
    + [f"a {o}= {v}" for o in IN_PLACE for v in parts(OPERANDS)]
    + parts(CALLS) * 8
)
