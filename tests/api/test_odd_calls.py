"""Calls that were once answered otherwise than by NumPy, one a line."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from tests.api.answers import differences

pytestmark = pytest.mark.filterwarnings("ignore")

I = (numpy.arange(12, dtype="i4") * 14 % 26).reshape(3, 4)  # noqa: E741

CALLS = """
np.argpartition(np.zeros(0), 0)
x=np.ones((3,4)); x.flat=2; r=x
x=np.ones((3,4)); x.flat=[1,2,3]; r=x
x=np.ones((3,4)).T; x.flat=np.arange(12); r=x
x=np.ones((3,4)); x.flat=[]; r=x
x=np.ones((3,4))[:, ::2]; x.flat=np.arange(40); r=x
np.array(I)[[],[]]
x=np.array(I); x[[[]]]=3; r=x
np.digitize(np.array([2.]),np.array([1.,3.,N.nan]))
np.digitize(np.array([2.]),np.array([N.nan,1.,3.]))
np.digitize(np.array([2.,N.nan]),np.array([N.nan,3,1.]))
np.digitize(np.array([2.]),np.array([N.nan,N.nan]))
np.digitize(np.array([2.]),np.array([N.nan]))
np.digitize(np.array([2.]),np.array([1.,N.nan,3.]))
np.digitize(np.array([2.]),np.array([]))
np.digitize(2.,[1,3])
np.digitize(np.array([2.]),np.array(1.))
np.digitize(np.array([2.]),np.array([[1.]]))
np.array(5).squeeze(axis=(0,))
np.cumulative_prod(np.array(5),include_initial=True)
np.cumulative_sum(np.array(I))
np.cumulative_sum(np.zeros(0),include_initial=True)
np.cumulative_sum(np.array(I),axis=1,include_initial=True)
np.compress([True],np.array(5.))
np.insert(np.array(5.),0,1)
np.nonzero(np.array(5.))
np.argwhere(np.array(5.))
np.flatnonzero(np.array(5.))
np.split(np.array(5.),1)
np.array_split(np.array(5.),1)
x=np.zeros(3); np.copyto(x,np.ones((1,3))); r=x
x=np.zeros(3); np.copyto(x,np.ones((1,1,3))); r=x
x=np.zeros(3); np.copyto(x,np.ones((2,3))); r=x
x=np.zeros((2,3)); np.copyto(x,np.ones((1,1,3))); r=x
x=np.zeros(3); np.copyto(x,[[1,2,3]]); r=x
x=np.arange(3.); np.copyto(x,x,where=[[True,False,True]]); r=x
x=np.arange(3.); np.copyto(x,x,where=[True,False]); r=x
x=np.arange(3.); np.copyto(x,x,where=3); r=x
r=np.sum(i for i in [1,2])
r=np.arange('2020-01','2020-04',dtype='M8[M]')=='x'
r=np.arange('2020-01','2020-04',dtype='M8[M]')=='2020-01'
r=np.arange('2020-01','2020-04',dtype='M8[M]')!='2020-01'
r=np.array([1,2],'m8[s]')=='1'
r=np.array([1,2],'m8[s]')!=None
r=np.fft.fft(np.ones((2,2)),2.5)
r=np.fft.fftn(np.ones((2,2)),(2.5,2))
r=np.dot(np.array([1,2],'m8[s]'),np.array([1,2]))
r=np.vdot(np.array([1,2],'m8[s]'),np.array([1,2]))
r=np.dot(np.array([1,2],'m8[s]'),np.array([1,2],'m8[s]'))
y=np.arange(3.); v=y[:]; y+=N.ma.array([1.,2,3],mask=[0,1,0]); r=v
y=np.arange(4.).reshape(2,2); v=y[:]; y*=N.matrix([[1,2],[3,4]]); r=v
x=np.zeros(3); np.copyto(x,1,where=[True,False,True]); r=x
x=np.zeros(3); np.copyto(x,np.ones((1,3)),where=[[True,False,True]]); r=x
x=np.zeros(()); np.copyto(x,np.ones((1,))); r=x
x=np.zeros(3); x[...]=np.ones((1,3)); r=x
r=np.divmod(np.array(I),2,np.empty((3,4),'i4'))
o=np.empty((3,4),'i4'); q=np.divmod(np.array(I),2,o); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,o); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,None,o); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,o,None); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,out=(o,None)); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,out=(None,o)); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.frexp(np.array(I)/2,o); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,out=o); r=[o,q[0],q[1]]
o=np.empty((3,4)); q=np.modf(np.array(I)/2,out=(o,)); r=[o,q[0],q[1]]
np.modf(np.array(I)/2,1)
np.add(np.array(I),1,None)
np.add(np.array(I),1,None,None)
np.add(np.array(I),1,out=None)
np.add(np.array(I),1,out=(None,))
np.add(np.array(I),1,out=())
np.add(np.array(I))
np.sqrt(np.array(V),np.empty(5),out=np.empty(5))
np.array(I).transpose(0)
np.array(V).transpose(0)
np.array(I).transpose(None)
np.array(I).transpose([1,0])
np.array(I).transpose(1,0)
np.compress([True,False,True,False,False],np.arange(3))
np.compress([True,False,True,True],np.arange(3))
np.compress([1,0],np.array(I),axis=1)
np.compress([],np.array(I),axis=1)
np.compress([[True]],np.arange(3))
np.compress(True,np.arange(3))
np.extract([True,False,True,False],np.arange(3))
np.extract(M,np.array(I))
np.linalg.vector_norm(np.zeros(0),ord=N.inf)
np.linalg.vector_norm(np.zeros(0),ord=-N.inf)
np.linalg.vector_norm(np.zeros(0),ord=0)
np.linalg.vector_norm(np.zeros(0),ord=1)
np.linalg.vector_norm(np.zeros(0))
np.linalg.vector_norm(np.zeros((0,3)),ord=N.inf,axis=1)
np.linalg.vector_norm(np.zeros((0,3)),ord=N.inf)
np.linalg.vector_norm(np.array(I)*1.,ord=3,axis=(0,1),keepdims=True)
np.linalg.norm(np.zeros(0),ord=N.inf)
np.linalg.matrix_norm(np.zeros((0,0)),ord=N.inf)
np.linalg.matrix_norm(np.zeros((0,3)))
np.where(np.array(I)>1,None,0)
np.where(np.array(I)>1,None,np.array(I))
np.where(np.array(I)>1,'a','b')
np.where(np.array(I)>1,N.datetime64(1,'s'),N.datetime64(2,'s'))
np.where([True,False],[1,None],2)
np.where(None)
np.where(np.array(I)>1, 1)
np.array(N.array([0,1],'M8[s]'),dtype='S6')
np.array(N.array([0,1],'M8[s]'),dtype='S')
np.array(N.array([0,1],'M8[D]'),dtype='U12')
np.array(N.array([0,1],'M8[D]')).astype('U12')
np.array(N.array([0,1],'M8[D]')).astype('S4')
np.array(N.array([0,1],'m8[D]'),dtype='S6')
np.count_nonzero(np.array(['a','']))
np.count_nonzero(np.array([b'a',b'']))
np.count_nonzero(np.array(['a',''],dtype=object))
np.count_nonzero(np.array([None,1],dtype=object))
np.count_nonzero(N.array([0,1],'M8[s]'))
np.count_nonzero(np.array(N.array([0,1],'m8[s]')))
np.count_nonzero(np.array([0.,-0.,N.nan]))
np.count_nonzero(np.array([0j,1j]))
np.count_nonzero([])
np.nonzero(np.array(['a','']))
np.flatnonzero(np.array(['a','']))
np.argwhere(np.array(['a','']))
np.any(np.array(['a','']))
np.all(np.array(['a','']))
np.array(['a','']).astype(bool)
np.percentile(np.array(V),[])
np.quantile(np.array(V),[])
np.quantile(np.array(V),np.zeros((0,2)))
np.percentile(np.array(V),[50])
np.percentile(np.array(V),[101])
np.percentile(np.array(V),-1)
np.percentile(np.array(V),N.nan)
np.percentile(np.array(V),50,method="x")
np.percentile(np.zeros(0),50)
np.quantile(np.zeros(0),[])
np.nanpercentile(np.array(V),[])
np.mean(np.array([1,2],object))
np.sum(np.array([1,2],object))
np.var(np.array([1.,2],object))
np.std(np.array([1.,2],object))
np.median(np.array([1,2],object))
np.average(np.array([1,2],object))
np.prod(np.array([1,2],object))
np.max(np.array([1,2],object))
np.cumsum(np.array([1,2],object))
np.insert(np.arange(5),[],[])
np.insert(np.arange(5),[],3)
np.insert(np.arange(5),[],[1,2])
np.insert(np.array(I),[],[],axis=1)
np.insert(np.arange(5),np.array([],int),[])
np.insert(np.arange(5),1.0,3)
np.insert(np.arange(5),[1.0],3)
np.insert(np.arange(5),slice(1,3),[7,8])
np.insert(np.arange(5),6,3)
np.insert(np.arange(5),[1,6],3)
np.insert(np.zeros(0),0,3)
a=np.zeros(3,dtype=[('a','i4',(2,)),('b','f8')]); a['a'][...]=1; r=[a['a'],a['b']]
a=np.zeros(3,dtype=[('a','i4',(2,)),('b','f8')]); a['a']=[1,2]; r=[a['a'],a['b']]
a=np.zeros(3,dtype=[('a','i4',(2,)),('b','f8')]); a['a'][:,0]=5; r=[a['a'],a['b']]
a=np.zeros((3,2),dtype=[('a','i4',(2,3)),('b','f8')]); a['a'][1]=5; r=[a['a'],a['b']]
a=np.zeros(3,dtype=[('a','i4',(2,)),('b','f8')]); a[1]['a'][0]=7; r=a['a']
a=np.zeros(3,dtype=[('a',[('c','i4'),('d','f8')])]); a['a']['c'][1]=7; r=a['a']['c']
a=np.zeros(3,dtype=[('a','i4',(2,))]); a['a'][[0,2]]=9; r=a['a']
a=np.zeros(3,dtype=[('a','i4',(2,))]); a['a'][a['a']==0]=9; r=a['a']
np.select([np.array(I)>3],[np.array(I)])
np.select([np.array(I)>3,np.array(I)>1],[np.array(I),np.array(I)*2],9)
np.select([np.array(V)>3],[np.array(I)[:, :1]])
np.select([True],[np.array(I)])
np.select([np.array(True)],[np.array(I)])
np.select([np.array(I)>3],[1,2])
np.select([],[])
np.select([np.array(I)],[np.array(I)])
np.select(np.array([I>3,I>1]),[np.array(I),np.array(I)*2.5])
np.select(np.array([[True,False],[False,True]]),np.array([[1,2],[3,4]]))
np.select([np.array(I)>3],[np.array(I)],np.array([1,2,3,4.5]))
x=np.array(I); np.place(x,np.arange(12)>5,[44,55]); r=x
x=np.array(I); np.place(x,np.array(I)>5,[44,55]); r=x
x=np.array(I); np.place(x,np.arange(11)>5,[44,55]); r=x
x=np.array(I); np.place(x,np.array(I)>50,[]); r=x
x=np.array(I); np.place(x,np.array(I)>5,[]); r=x
x=np.array(I).T; np.place(x,np.arange(12)>5,[44,55]); r=x
x=np.array(I); np.place(x,(np.array(I)>5).T,[44,55.7]); r=x
x=np.array(I); np.putmask(x,np.arange(12)>5,[44,55]); r=x
x=np.array(I); np.putmask(x,np.arange(11)>5,[44,55]); r=x
x=np.array(I).T; np.putmask(x,(np.arange(12)>5).reshape(2,6),[44,55]); r=x
x=np.array(I); np.putmask(x,np.array(I)>5,[]); r=x
x=np.array(I); np.putmask(x,np.array(I)>5,5.5); r=x
x=np.array(I); np.putmask(x,np.array(I)>5,np.arange(12).reshape(4,3)); r=x
r=np.asarray(np.arange(6.).sum()); r[...]=5
r=np.asarray(np.arange(6.)[2]); r[...]=5
r=np.asarray(np.float64(3)); r[...]=5
r=np.asanyarray(np.arange(6.).sum()); r[...]=5
r=np.array(np.arange(6.).sum()); r[...]=5
r=np.array(np.arange(6.).sum(), copy=False); r[...]=5
r=np.require(np.arange(6.).sum(),requirements='W'); r[...]=5
r=np.atleast_1d(np.arange(6.).sum()); r[...]=5
r=np.ascontiguousarray(np.arange(6.).sum()); r[...]=5
r=np.copy(np.arange(6.).sum()); r[...]=5
r=np.squeeze(np.ones((1,1)).sum()); r[...]=5
r=np.expand_dims(np.arange(6.).sum(),0); r[...]=5
r=np.arange(6.).sum(); r[...]=5
np.split(np.arange(4),3)
np.split(np.arange(4),2.0)
np.split(np.arange(4),0)
np.array_split(np.arange(4),-1)
np.array_split(np.arange(4),[1.5])
np.histogram(np.array(V),2.0)
np.histogram(np.array(V),0)
np.histogram(np.array(V),[1])
np.bincount(np.array([1.0]))
np.bincount([])
np.bincount(np.asarray(N.array([0,2],'u8')))
np.bincount(np.asarray(N.array([0,2],'u8')),np.ones(2),5)
np.bincount(np.asarray(N.array([2**63],'u8')))
np.bincount(np.asarray(N.array([],'u8')))
np.add.at(np.any(np.ones(2)),0,1)
np.add.at(np.any(np.ones(2)),(),1)
a=np.arange(3); del a[0]; r=a
a=np.array(3); del a[0]; r=a
a=np.ones(3)[0]; del a[0]; r=a
a=np.sum(np.ones(3)); del a[0]; r=a
x=np.sum(np.arange(3.)); x.resize((3,5),refcheck=False); r=x
x=np.sum(np.arange(3)); x.resize(1.5); r=x
x=np.sum(np.arange(3)); x.shape=(1,); r=x
np.add(np.arange(3),np.ones(4),out=np.arange(3))
np.add(np.arange(3),np.ones(3),out=np.arange(4))
np.add(np.arange(3),1.5,np.arange(4))
np.add(np.arange(3),[1.5,2],np.arange(4))
np.add(np.arange(3),np.arange(2),np.arange(4))
np.sqrt(np.arange(3),out=np.arange(4))
np.bincount(np.array([-1]))
np.choose([],[])
np.choose([0,1],[1,2])
np.choose(1.0,[1,2])
np.choose([0,5],[1,2],mode='x')
np.pad(np.arange(3),-1)
np.pad(np.arange(3),1.5)
np.pad(np.arange(3),())
np.pad([],1)
np.pad([],1,mode='edge')
np.hanning(1.5)
import pandas as pd; r=np.array(V)[pd.Series([1,2])]
import pandas as pd; r=np.array(V)[pd.Series([1,2])>1] if False else np.array([1,2])[pd.Series([True,False])]
import pandas as pd; r=np.array(I)[pd.Index([1,2]),1]
import pandas as pd; x=np.array(I); x[pd.Series([1,2])]=7; r=x
import pandas as pd; r=np.take(np.array(V),pd.Series([1,2]))
np.hanning(5)[N.array([1,2])]
np.histogram_bin_edges(np.array([True,False,True]),'auto')
np.histogram(np.array([True,False,True]),'fd')
np.histogram(np.array([True,True]),'stone')
np.interp(np.array([1.5,2.5j]),np.array([1.,2,3]),np.array([1+1j,2,3]),period=2)
np.interp(np.array([1.5,2.5]),np.array([1.,2,3j]),np.array([1,2,3]),period=2)
np.interp(np.array([1.5,2.5j]),np.array([1.,2,3]),np.array([1+1j,2,3]))
np.digitize(np.array([],'m8[s]'),np.array([1,2],'m8[s]'))
np.digitize(np.array([1],'m8[s]'),np.array([1,2],'m8[s]'))
np.digitize(np.array([],'m8[s]'),np.array([1.,2]))
np.digitize(np.array([1],'m8[s]'),np.array([1,2]))
np.digitize(np.array([1.]),np.array([],'m8[s]'))
np.digitize(np.array([]),np.array([1,2],'M8[s]'))
np.digitize(np.array(['a']),np.array([1,2]))
np.digitize(np.array([None]),np.array([1,2]))
np.digitize(np.array([1,2]),np.array([True,False]))
np.tile(np.arange(3.),(2,'a'))
np.tile(np.arange(3.),'a')
np.tile(np.arange(3.),('a',2))
np.tile(np.arange(3.),('1',2))
np.tile(np.arange(3.),(2.,1))
np.tile(np.zeros(0),(2,'a'))
np.tile(np.array(1.),'a')
"""
"""What an expression gives, or `r` after statements; V is a vector, I a matrix of integers."""


def called(text):
    """A line's statements, and the value of its last, as a function of the package."""

    def run(np):
        names = {"np": np, "N": numpy, "V": numpy.arange(5.0), "I": I}
        *before, last = text.split("; ")
        exec("\n".join(before), names)
        return eval(last.removeprefix("r="), names)

    return run


IN_PLACE = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "<<="]
OTHERS = [
    "np.ones(2)",
    "np.arange(2)",
    "np.ones((2,3))",
    "np.ones((3,4))",
    "np.ones((4,3))",
    "np.ones(())",
    "[.5,1]",
]


@pytest.mark.parametrize("operator", IN_PLACE)
def test_faults_of_dtypes_come_before_those_of_shapes(mode, operator):
    calls = [
        f"a={a}; a{operator}{b}; r=a"
        for a in ("np.arange(3)", "np.ones(3)", "np.any(np.ones(3))")
        for b in OTHERS
    ]
    assert not differences((text, called(text)) for text in calls)


SCALARS = [
    "b.any()",
    "b[0].astype(bool)",
    "b[0].T",
    "np.transpose(b[0])",
    "b[0].reshape(())",
    "np.inner(b,b)",
    "b.max()",
]
ARRAYS = [
    "np.array(b[0])",
    "np.asarray(b[0])",
    "np.copy(b[0])",
    "b[0,...]",
    "b[:1].reshape(())",
    "np.squeeze(b[:1])",
]


@pytest.mark.parametrize("made", SCALARS + ARRAYS)
def test_scalars_and_arrays_without_axes(mode, made):
    """A name is bound to another scalar, where an array is written to, if its dtype allows."""
    calls = [
        f"b=np.asarray([True,False]); a={made}; a{op}; r=a" for op in ("//=1.5", "+=True", "&=False", "-=1")
    ]
    calls += [
        f"b=np.asarray([True,False]); a={made}; a[...]=False; r=a",
        f"b=np.asarray([True,False]); r=({made}).shape",
    ]
    assert not differences((text, called(text)) for text in calls)


@pytest.mark.parametrize("base", ["[2,3]", "N.array([2,3],'u1')", "[2.,3]", "2", "2.", "[]", "[True,False]"])
def test_integers_to_negative_powers(mode, base):
    for power in ("[-1]", "-1", "[1]", "N.array([1],'u1')", "N.array([-1],'i1')", "[-1.]", "-1."):
        for text in ("np.power({0},{1}).shape", "({0}**{1}).shape", "a={0}; a**={1}; r=a.shape"):
            a = f"np.asarray({base})" if power[0] not in "[N" or base[0] in "[N" else base
            b = f"np.asarray({power})" if power[0] in "[N" else power
            assert not differences([(text.format(a, b), called(text.format(a, b)))])


@pytest.mark.slow
def test_single_calls(mode):
    assert not differences((text, called(text)) for text in CALLS.strip().splitlines())


def test_a_text_of_ones_own_goes_and_numpys_comes_back():
    before = np.add.__doc__
    np.add.__doc__ = "another"
    assert np.add.__doc__ == "another"
    del np.add.__doc__
    assert np.add.__doc__ == before == numpy.add.__doc__
