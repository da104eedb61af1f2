"""Calls that meet arrays as elements, texts, old pickles and limits, one a line: as NumPy, or its error."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as sp
from tests.api.answers import differences
from tests.api.test_odd_calls import called

pytestmark = pytest.mark.filterwarnings("ignore")

ELEMENTS = """
a=np.array([1,2.5,"x",None],dtype=object); r=(a.copy()[2], a.copy()[::-1][0], a.copy().reshape(2,2)[1,0])
b=np.zeros(2,dtype=object); b[0]=np.arange(3); c=b[0]; c[1]=7; r=b[0]*2
b=np.zeros(2,dtype=object); b[0]=np.arange(3); b[1]=b[0]*2; r=b[1].sum()
b=np.zeros((2,2),dtype=object); b[0,1]=np.arange(3); c=b[0]; r=(c[1], b[0,1].sum(), b[0][1].sum())
b=np.empty((),dtype=object); b[()]=np.arange(3); r=b[()]
b=np.empty(2,dtype=object); b[0]=np.arange(3); r=b[0:1][0]
b=np.zeros(1,dtype=[('x','O')]); b[0]['x']=np.arange(3); r=b[0]['x']
c=np.zeros(1,dtype=[('x','O',5)]); c[0]['x']=np.arange(3)
np.add(np.array([1,"s"]*9,dtype=object),np.array([1,"s"]*9,dtype=object),out=np.ones(18,int),casting="unsafe")
o=np.ones(2,int); np.add(np.array([1,"12"],dtype=object),1,out=o,dtype=int,casting="unsafe"); r=o
x=np.zeros(2); x[...]=np.array([1,"2.5"],dtype=object); r=x
x=np.zeros(2); x[...]=np.array([1,"s"],dtype=object); r=x
a=np.array([1,None,"a",3],dtype=object); r=a[np.array([0,2])].tolist()
a=np.array([1,None,"a",3],dtype=object).reshape(2,2); r=a[[0,1],[1,0]].tolist()
a=np.array([1,2,3],dtype=object); r=a[a>1]
np.array(np.array([""]*10,dtype=object),dtype="S").dtype.str
np.array(np.array([1,"ab"],dtype=object),dtype="U")
x=np.zeros((),'f2'); from numpy._core._rational_tests import rational; x[()]=rational(1,2); r=x
"""
NOTHING = """
x=np.zeros(4,dtype=[('I',int),('S','S0')]); x['S']=['a','b','c','d']; r=x['S'].dtype.str
x=np.zeros(4,dtype=[('I',int),('S','S0')]); r=x['S'].reshape(2,2).copy().dtype.str
import io; x=np.zeros(4,[('S','S0'),('I',int)])['S']; b=io.BytesIO(); np.save(b,x); r=len(b.getvalue())
z=np.zeros(10,dtype=[('x',str,0)])['x']; r=(z.view(str).dtype.str, z.view((str,1)).shape)
z=np.zeros(10,(N.void,0)); r=z.view((N.void,1)).shape
import pickle; z=np.zeros(10,dtype=[('x',bytes,0)])['x']; r=pickle.loads(pickle.dumps(z)).dtype.str
np.zeros(10,dtype=[]).shape
np.array([(1,2)],dtype='i4,i4')**2
"""
DRAWN = """
np.random.choice(3.,3)
np.random.choice([[1,2],[3,4]],3)
np.random.choice([1,2,3],(-1,1))
np.random.default_rng(3).integers([-1],-2,endpoint=True)
np.random.default_rng(3).integers([-1,0],5,endpoint=True)
np.random.default_rng(3).integers(0,-10,size=(3,0),endpoint=True)
"""
BUFFERS = """
import array; s=array.array('d',[1,2,3]); a=np.asarray(s); b=a*2; s[0]=100; r=(b, a)
import array; s=array.array('d',[1,2,3]); a=np.array(s); b=a*2; s[0]=100; r=(b, a)
import array; s=array.array('d',[1,2,3]); a=np.asarray(s); b=a*2; a[1]=50; r=(b, list(s))
s=bytearray(b'abc'); a=np.asarray(memoryview(s)); b=a*2; s[0]=0; r=(b, a)
s=bytearray(b'abc'); a=np.asarray(memoryview(s)); a[1]=7; r=N.array(list(s))
s=bytearray(b'abc'); a=np.array(memoryview(s), 'f8'); s[0]=7; r=a
import array; s=array.array('d',[1,2,3]); r=np.asarray(s).base is not None
x=N.arange(4); I=type("I",(),{"__array_interface__":x.__array_interface__}); a=np.asarray(I())*2; x[0]=9; r=a
I=type("I",(),{"__array_interface__":N.arange(4).__array_interface__}); o=I(); r=np.asarray(o).base is o
"""
MEMORY = """
a=np.arange(10); b=a[2:]; a.strides=16; r=a
a=np.arange(10)[:5]; a.strides=16; a[1]=77; r=a
a=np.arange(10); v=a[::-1]; v.strides=(8,); r=v
a=np.arange(10); a.strides=3; r=a.flags.aligned
a=np.array(0); a.strides=(); r=a
a=np.array(0); a.strides=None
a=np.arange(12).reshape(3,4); m=np.asmatrix(a); a[0,0]=-1; m[1,1]=-2; r=(N.asarray(m), a)
np.negative._resolve_dtypes_and_context((N.dtype('i4'),)*2)[0] == (N.dtype('i4'),)*2
a=np.array(0.).byteswap(); a[...]=3; r=a
a=np.array(0.); b=a.byteswap(); b=b.view(b.dtype.newbyteorder()); b[...]=5; r=b
x=np.ones((10,10)); r=np.shares_memory(next(np.nditer(x)), x)
x=np.ones((10,10)); r=np.shares_memory(N.ones(3), x)
a=np.arange(20.).reshape(4,5); r=[x.flat.__array__().flags.writeable for x in (a, a[::2], a[::2,::2])]
a=np.arange(20.); a.flags.writeable=False; r=a.flat.__array__().flags.writeable
"""
TEXTS = """
np.zeros(3,dtype="T").tolist()
np.sort(np.zeros(3,dtype="T")).tolist()
np.argmax(np.zeros(3,dtype="T"))
np.full(2,"ab",dtype="T").tolist()
np.full_like(np.array(["a"],dtype="T"),"b").tolist()
s=np.array(["a","b"],dtype="T"); s.resize(5); r=s.tolist()
np.add("hello",["a","b"],dtype=N.dtypes.StringDType).tolist()
a=np.array(['foo ','bar'],dtype='S4'); a*=2; r=a
a=np.array(['foo ','bar'],dtype='U4'); a*=np.array([2,1]); r=a
a=np.array('a',dtype='S1'); a*=20; r=a
"""
LIMITS = """
np.ones((1,))[(True,)*64]
np.ones((1,))[(False,)*80]
np.ones((1,)*64)[(np.array([0]),)*64]
np.ones((1,)*64)[(True,)*64]
np.ones((1,)*31)[(np.array([0]),)*31]
x=np.ones((1,)*64); x[(np.array([0]),)*64]=1; r=x
x=np.ones((1,)); x[(True,)*64]=1; r=x
"""
SORTERS = """
np.partition(np.arange(10),2,kind=1)
np.argpartition(np.arange(10),2,kind=None)
np.searchsorted(np.array([3,1,2]),[1,2],sorter=np.argsort(np.array([3,1,2])))
np.searchsorted(np.array([3.,1,2]),[1,2],side='right',sorter=(1,2,0))
np.searchsorted(np.array([3,1,2]),0,sorter=[1.1])
np.searchsorted(np.array([3,1,2]),0,sorter=[1,2])
np.searchsorted(np.array([3,1,2]),2,sorter=[0,1,3])
np.searchsorted(np.array([3,1,2]),0,sorter=[-1,0,1])
np.delete(np.arange(5),(-1,0))
np.delete(np.array(I),(0,2),axis=1)
np.delete(np.arange(5),(9,))
"""
AXES = """
np.vecdot(X,Y,axes=[np.int8(-1),np.array(-1,dtype='i4')])
np.vecdot(X,Y,axes=[(-1,),(-1,),(-1,)],keepdims=True)
np.vecdot(X,Y,axes=[0,2,0],keepdims=True)
np.vecdot(X,Y,axes=[0,2,1],keepdims=True)
np.vecdot(X,Y,axes=[0,2],keepdims=True)
np.vecdot(X,Y,axes=[0,2])
np.vecdot(X,Y,axes=((-1,),-1,()))
np.vecdot(X,Y,axes=[(-1.0,),-1])
np.vecdot(X,Y,axes=[None,1])
np.vecdot(X,Y,axes=[-1,-1,-1])
np.vecdot(X,Y,axes=[0,1])
np.matmul(X,Y,axes=[(-2,-1),[-2,-1],(-2,-1)])
np.matmul(X,Y,axes=[(1,0),(2,0),(0,2)])
np.matvec(X,np.arange(3.),axes=[(1,0),0,0])
"""
SIGNS = """
np.sum(-np.zeros(3,'f2'),initial=N.float16(-0.0))
np.sum(-np.zeros((3,4)),axis=0,initial=-0.0)
np.sum(np.array([complex(-0.0,-0.0)]*3),initial=complex(-0.0,-0.0)).imag
np.sum(np.zeros(0),initial=-0.0)
np.sum(-np.zeros((3,4)),axis=0)
np.sum(np.array([1.,-1]),initial=-0.0)
"""
OTHERS = """
np.std(np.array([1,2,4],dtype=object))
type(np.std(np.array([1,2],dtype=object))) is type(np.nanstd(np.array([1,2],dtype=object)))
np.array2string(N.arange(3).view(N.ma.MaskedArray))
np.linspace(N.array(1).view(N.ma.MaskedArray),7).mask
np.geomspace(N.array(1).view(N.ma.MaskedArray),7).mask
np.logspace(N.array(1).view(N.ma.MaskedArray),2).mask
np.from_dlpack(np.zeros(5,'i4,i1')['f0'])
np.from_dlpack(np.arange(5,dtype='>i8'))
np.from_dlpack(np.asarray(N.datetime64('2021-05-27')))
np.frombuffer(b'12345678').base == b'12345678'
o=np.arange(10); r=np.frombuffer(o).base is o
o=np.arange(10); v=o[...]; r=v.base is o
np.modf.at(np.arange(10),[1])
np.divmod.at(np.arange(10),[1],2)
np.concatenate(np.zeros(3),np.zeros(3))
np.concatenate((np.zeros((1,2)),np.zeros((1,3))))
np.nanstd(np.eye(3,dtype='F'),dtype='F')
np.nanvar(np.eye(3,dtype='f'),0,dtype='d')
c,a,_=np.random.default_rng(0).__reduce__(); g=c("PCG64DXSM"); r=g.bit_generator.state["bit_generator"]
c,a,s=np.random.RandomState(3).__reduce__(); g=c("MT19937"); g.set_state(s); r=g.normal(size=3)
np.random.default_rng(1).integers(-1,-2,endpoint=True)
"""


@pytest.mark.parametrize("calls", [ELEMENTS, NOTHING, DRAWN, BUFFERS, MEMORY, TEXTS, LIMITS, SORTERS, OTHERS])
def test_single_calls(mode, calls):
    found = differences((text, called(text)) for text in calls.strip().splitlines())
    assert not found


def test_axes_of_products(mode):
    made = "X=np.arange(27.).reshape(3,3,3); Y=np.arange(9.).reshape(3,1,3); r="
    assert not differences((text, called(made + text)) for text in AXES.strip().splitlines())


def test_signs_of_sums_are_kept(mode):
    for text in SIGNS.strip().splitlines():
        ours, numpys = (called(f"r=np.signbit({text})")(m) for m in (sp, numpy))
        assert ours.tolist() == numpys.tolist(), text


def test_tolerances_that_are_not_finite_are_told(mode):
    x = sp.arange(3.0)
    with pytest.warns(RuntimeWarning, match="atol is not valid"):
        assert sp.isclose(x, x, atol=sp.array([float("inf")])[0]).all()
    with sp.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="atol is not valid"):
        sp.isclose(x, x, rtol=float("nan"))


@pytest.mark.parametrize("dtype", ["f2", "f8", "g"])
def test_products_raise_where_they_are_made(mode, dtype):
    a, b = sp.array([1, 1], dtype), sp.array([-float("inf"), float("inf")], dtype)
    with sp.errstate(invalid="raise"):
        for product in (lambda: sp.dot(a, b), lambda: sp.dot(a[None, None], b[None, :, None])):
            if dtype != "f8":  # what BLAS tells differs
                with pytest.raises(FloatingPointError, match="invalid value"):
                    product()
        assert sp.dot(a, a) == 2


@pytest.mark.parametrize("made", ["RandomState", "default_rng"])
@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("kind", ["?", "i4", "f2", "f8", "c8"])
def test_what_has_no_lines_or_is_read_only_is_not_shuffled(made, small, kind):
    def found(module, make):
        try:
            getattr(module.random, made)(3).shuffle(make(module))
        except (TypeError, ValueError) as error:
            return type(error)
        return None

    def read_only(np):
        x = np.ones((3, 2), kind)
        x.flags.writeable = False
        return x

    makes = [
        lambda np: np.max(np.array([2, 0], kind)),
        lambda np: np.sum(np.array([2, 0], kind)),
        lambda np: np.array([2], kind)[0],
        lambda np: np.array(2, kind),
        read_only,
    ]
    with sp.config.override(small_bytes=small):
        for make in makes:
            assert found(sp, make) is found(numpy, make) is not None


@pytest.mark.parametrize("made", ["RandomState", "default_rng"])
def test_what_is_no_sequence_is_shuffled_as_numpys(made):
    ours, numpys = {i: i for i in range(7)}, {i: i for i in range(7)}
    for module, items in ((sp, ours), (numpy, numpys)):
        with pytest.warns(UserWarning, match="shuffling a 'dict'") as told:
            getattr(module.random, made)(3).shuffle(items)
        assert told[0].filename == __file__
    assert ours == numpys
