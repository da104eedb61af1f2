"""Questions of NumPy's own tests that were once answered otherwise, one a line, each for its family."""

from __future__ import annotations

import copy  # noqa: F401 (the calls name it)
import io  # noqa: F401
import pickle

import numpy
import pytest

from tests.api.answers import differences

pytestmark = pytest.mark.filterwarnings("ignore")


class Override:
    """Another library's array, which says what universal functions of it mean."""

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        outs = keywords.get("out") or ()
        return [
            function.__name__,
            method,
            *(i for i, a in enumerate(inputs) if a is self),
            *(-1 - i for i, a in enumerate(outs) if a is self),
        ]


def buffered(np, a):
    """A pickle and what it is read to from buffers."""
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(a, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(text, buffers=buffers)


def cut(np, steps):
    """Views of views of views."""
    x = whole = np.arange(200)
    for k in range(steps):
        x = x[1:-1] if k % 2 else x[::-1]
        x[0] = -k
    return [x, whole, x.base is whole]


BYTES = """
x=np.arange(6.).reshape(2,3); v=x.view({to!r}); r=v
x=np.arange(6.).reshape(2,3); v=x.view({to!r}); v[0]=1; r=x
x=np.arange(6.).reshape(2,3); v=x.view({to!r}); x[1]=9; r=v
x=np.arange(6.).reshape(2,3); v=x.view({to!r})[:,::2]; v[...]=0; r=[x, v.base is x, np.shares_memory(v,x)]
x=np.arange(6.).reshape(2,3).T; v=x.view({to!r}); v[0]=1; r=x
x=(np.arange(6.)+1).reshape(2,3); v=x.view({to!r}); v+=1; r=[x,v,v.strides]
np.arange(3.)[::2].view({to!r})
np.array(5.).view({to!r})
"""
CALLS = """
x=np.ones(2,'i8,i8'); w=x.view({'names':['f1'],'formats':['i8'],'offsets':[8]}); w[:]=4; r=[x['f0'],x['f1']]
x=np.zeros(2,'i4,f4'); del x[0]['f0']; r=1
x=np.ndarray(()); x[()]=5; y=np.ndarray((),buffer=x); y[()]=6; r=x
x=np.zeros(4); y=np.frombuffer(x); y[1]=6; r=x
np.ndarray((2,),strides=())
np.ndarray(2,object)
np.empty((2,2),object)
np.empty_like(np.zeros(2,object))
np.ndarray(2,'S0').itemsize
x=np.frombuffer(b'abcd','u1'); x.setflags(write=True); r=x
x=np.arange(5); y=buffered(np,x); x[0]=-1; r=[x,y]
x=np.arange(12).reshape(3,4)[:,::2]; y=pickle.loads(pickle.dumps(x,protocol=5)); y[0]=-1; r=[x,y]
x=buffered(np,np.arange(5)); r=x.flags.writeable
x=np.array([[1],2],dtype=object); y=copy.deepcopy(x); y[0].append(3); r=[x[0],y[0]]
cut(np,3)
cut(np,40)
np.ones(3,object).any(dtype=object,keepdims=True)
np.ones(3).all(dtype=object,keepdims=True)
np.array([0,1]).choose([1,2],[3,4])
np.array([0,1]).choose(([1,2],[3,4]))
np.arange(3,device='gpu')
np.zeros_like(np.arange(3),device='gpu')
np.fft.fftfreq(3,device='gpu')
np.arange(3).to_device('cpu',stream=1)
np.array([1,2],copy='always')
x=np.arange(3); r=np.array(x,copy=N._CopyMode.IF_NEEDED) is x
np.array([1,2],copy=N._CopyMode.NEVER)
format(np.arange(3),'5')
format(np.arange(3))
del np.arange(3).flags.writeable; r=1
del np.arange(3).flat[1]; r=1
f=np.arange(6).reshape(2,3).flat; a=[f.coords,next(f),next(f)]; b=f.coords; r=[*a,b,list(f),f.index,list(f)]
f=np.arange(6).reshape(2,3).flat; next(f); f[3]; r=[f.index,next(f)]
x=np.eye(3); x.resize(); r=x
x=np.eye(3); x.resize(None); r=x
np.eye(3).resize(refcheck='hi')
np.put(np.zeros(0),[0],[1])
np.vdot(np.array([1j,2],object),np.array([1j,2],object))
np.dot(np.ones((4,3)),np.ones((3,2)),np.ones((4,1)))
np.dot(np.ones((4,3)),np.ones((3,2)),np.ones((4,2),'f4'))
np.dot(np.ones((4,3)),np.ones((3,2)),np.ones((4,4))[:,::2])
np.var(np.array([1,4],object))
np.array([[(1,),(2,)],np.array([1,2])],dtype='2i')
np.array(np.array([1,2]),dtype='(2,)i')
np.array(np.array(['','ab'],object),dtype='S').dtype.itemsize
np.array(np.datetime64(123,'s'),dtype='S6')
l=[]; l.append(l); r=list(np.array([l,l],dtype=object).shape)
l=np.ones((1,1)); l=(lambda n: [n:=[n] for _ in range(63)][-1])(l); r=np.array(l,dtype=float)
np.array([np.zeros((3,2)),np.zeros((1,2))],dtype=object)[1]
np.array([np.arange(6).reshape(2,3).T]*2).flags.c_contiguous
x=np.arange(3.); x.imag[0]=1; r=x
x=np.arange(3.).reshape(1,3); y=np.broadcast_to(x,(1,3)); y[0]=1; r=x
x=np.arange(6.)[::-1]; y=x.ravel(); y[0]=9; r=x
x=np.arange(6.)[::2]; y=x.ravel('K'); y[0]=9; r=x
np.mean(np.ones((3,4)),where=np.ones((2,3),'u4'))
np.var(np.ones((3,4)),where=np.ones((2,3),'u4'))
np.add(np.arange(2),np.arange(2),out=Override())
np.modf(np.arange(2.),out=(None,Override()))
np.add.reduce(Override())
np.add.accumulate(Override())
np.add.at(Override(),[0],1)
np.add.outer(np.arange(2),Override())
np.matmul(Override(),np.ones(2))
np.matmul(np.ones(2),np.ones(2),out=(Override(),))
np.vecdot(np.ones(2),Override())
[np.matmul.nin,np.matmul.nout,np.matmul.nargs,np.matmul.ntypes,np.matmul.signature,np.vecmat.identity]
np.matmul.reduce(np.ones((2,2,2)))
type('C',(),{'f':np.matmul})().f(np.ones((2,3)),np.ones(3))
np.matmul(np.ones((2,2)),np.ones((2,2)),np.zeros((2,2)))
np.matmul(np.ones((2,2)),np.ones((2,2)),np.zeros((2,2)),out=np.zeros((2,2)))
np.ediff1d(np.array([1,2,3]),to_end=N.nan)
np.ediff1d(np.array([1,2,3]),to_begin=[4,5],to_end=6)
np.histogram_bin_edges(np.array([0,1,2,3,4,5,6,7,8]*3),'stone')
np.histogram_bin_edges(np.array([0,1,2,3,4,5,6,7,8]*3)/10,'stone')
np.histogram_bin_edges(np.array([0,1,2,3,4,5,6,7,8]*3),'stone',(0,4))
np.trim_zeros([0,1,0,2,0])
np.nanargmin(np.zeros((0,3)))
np.nanstd(np.array([[1.,N.nan]]),axis=1,out=np.empty(1,int))
np.zeros([2,1],N.dtypes.StrDType)
np.add(1,2,dtype=N.dtypes.Float32DType)
np.empty(2**64)
np.reshape(np.arange(3))
x=np.zeros(1,'O'); x.fill([1,2]); r=x[0]
x=np.empty((2,2),object); x.flat[2]=(1,2,3); r=list(x.flat[2])
copy.copy(np.ones((2,3),order='F')).flags.f_contiguous
[np.zeros((2,2),[('junk','i1'),('a','f8')])['a'].flags.aligned]
np.require(np.ones((2,3)),None,['C','F'])
np.require(np.ones((2,3)),None,['Q'])
np.require(np.ones((2,3)),'f4',['F','O']).flags.fnc
np.maximum([np.longdouble('0.1')],[np.nextafter(np.longdouble('0.1'),1)])
np.add(1,2,...)
np.add.reduce(np.arange(3),out=(...,))
np.negative.at(np.arange(3),[0],1)
np.vecdot(np.array([1j,2],object),np.array([1j,2],object))
np.vecdot(np.ones((2,2)),np.ones((2,2)),axis=0,axes=[0,0,()])
np.zeros_like(np.ones((2,3)).T,shape=(4,5)).flags.fnc
np.random.Philox(np.array([1,2])).random_raw(3)
b=np.random.SFC64(np.arange(3)); s=b.state; x=b.random_raw(2); b.state=s; r=[x,b.random_raw(2)]
[isinstance(np.random.SFC64(1).state["state"]["state"],np.ndarray)]
b=pickle.loads(pickle.dumps(np.random.MT19937(5))); r=[b.random_raw(3),b.jumped().random_raw(2)]
np.random.SeedSequence(np.array([1,2])).generate_state(3)
np.random.default_rng(np.arange(3)).random(2)
np.random.RandomState(np.arange(3)).rand(2)
x=np.empty((2,3),order='F'); np.random.Generator(np.random.PCG64(1)).standard_normal(out=x); r=x
np.random.default_rng(1).permuted(np.arange(3),out=np.zeros((1,3),int))
np.random.default_rng(1).permuted(np.arange(3.),out=np.zeros(3,int))
type('C',(),{'f':np.array})().f([1,2])
type('C',(),{'f':np.zeros})().f(2,dtype='i4')
pickle.loads(pickle.dumps(np.arange))(3)
np.polynomial.polynomial.polyval(np.arange(5.),np.arange(10.).reshape(2,5))
np.polynomial.polynomial.polyval(np.arange(5.),np.arange(10.).reshape(2,5),tensor=False)
np.polynomial.hermite.hermval(np.arange(5.),N.arange(6.).reshape(3,2))
np.polynomial.chebyshev.chebgrid2d(np.arange(3.),np.arange(5.),N.arange(6.).reshape(3,2))
np.polynomial.legendre.leggrid3d(np.arange(3.),np.arange(2.),[1.,2],np.ones((2,2,2)))
np.polynomial.laguerre.lagval2d(np.arange(3.),np.arange(3.),N.arange(6.).reshape(3,2))
np.polynomial.polynomial.polyvalfromroots(np.arange(5.),N.arange(6.).reshape(2,3))
np.polynomial.polynomial.polyvalfromroots(np.arange(5.),N.arange(6.).reshape(2,3),tensor=False)
np.polynomial.Polynomial([1,2,3])(np.arange(3.))
np.polynomial.polynomial.polyfit(np.arange(5.),np.arange(5.)**2,2)
np.linalg.multi_dot([np.ones((2,2)),np.ones((1,1)),np.ones((2,2))])
np.linalg.multi_dot([np.ones((2,2)),np.ones((2,2,2)),np.ones((2,2))])
np.linalg.multi_dot([np.ones(2),np.ones((2,3)),np.ones(3)])
np.linalg.multi_dot([np.ones(3),np.ones((2,3)),np.ones(3)])
np.linalg.multi_dot([np.ones((2,2,3)),np.ones((3,2))])
f=io.BytesIO(); np.savez(f,a=np.ones(2)); f.seek(0); z=np.load(f); r=[isinstance(z,N.lib.npyio.NpzFile),z.f.a]
"""
"""What an expression gives, or `r` after statements."""


def call_of(text):
    def run(np):
        names = {"np": np, "N": numpy, **globals()}
        *before, last = text.split("; ")
        exec("\n".join(before), names)
        return eval(last.removeprefix("r="), names)

    return run


@pytest.mark.slow
def test_single_calls(mode):
    assert not differences((text, call_of(text)) for text in CALLS.strip().splitlines())


@pytest.mark.parametrize("to", ["i8", "u1", "i2", "c16", "V8", "f4", "i4,i4", "M8[s]"])
def test_bytes_seen_as_another_dtype(mode, to):
    texts = BYTES.format(to=to).strip().splitlines()
    assert not differences((text, call_of(text)) for text in texts)


WRITES = {
    "element": "i[1]",
    "slice": "i[:2]",
    "places": "i[[0, 1]]",
    "mask": "i[N.arange(5) < 2]",
    "flat": "i.flat[:2]",
}


@pytest.mark.parametrize("key", WRITES)
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4"])
def test_imaginary_parts_are_lost_with_a_warning_at_the_statement(mode, key, dtype):
    from spartan_ng import array, zeros

    i, new = zeros(5, dtype), array([3 + 1j, 2])
    with pytest.warns(numpy.exceptions.ComplexWarning):
        exec(f"{WRITES[key]} = new[0] if {key == 'element'} else new", {"i": i, "new": new, "N": numpy})
    with pytest.warns(numpy.exceptions.ComplexWarning):
        cast = new.astype(dtype)
    with numpy.testing.suppress_warnings() as quiet:
        quiet.filter(DeprecationWarning)
        assert 3 in numpy.asarray(i).tolist()
        assert numpy.asarray(cast).tolist() == [3, 2]
    assert not quiet.log
