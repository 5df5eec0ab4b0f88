"""The border of the compiled core: what is wrong is refused, whatever it is, and limits are kept inside."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import cellguard
from cellguard._core import cholesky, circuits, echelon, elimination, flows, gram, interior, mincut, ordering, patterns
from cellguard._engine.space.network import build_adjacency

STUBS = sorted((Path(cellguard.__file__).parent / "_core").glob("[a-z]*.pyi"))
WHOLE = np.zeros(1, np.int64)


def newton(mover=WHOLE, pairs=(1, 0)):
    """The steps of a program of one mover with one bound."""
    one = np.ones(1)
    return interior.Newton(one, one, (mover, WHOLE), (one, 0.0 * one, one), (np.zeros(0), np.zeros(0)), pairs)


def test_every_subject_has_stubs():
    core = importlib.import_module("cellguard._core")
    assert {stub.stem for stub in STUBS} == {name for name, _ in inspect.getmembers(core, inspect.ismodule)}


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_stubs_say_what_is_there(stub):
    module = importlib.import_module(f"cellguard._core.{stub.stem}")
    tree = ast.parse(stub.read_text())
    declared = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert set(declared) == {name for name, value in vars(module).items() if callable(value)}
    for name, node in declared.items():
        functions = [(node, getattr(module, name))]
        if isinstance(node, ast.ClassDef):
            functions = [(each, getattr(getattr(module, name), each.name)) for each in node.body]
        for function, there in functions:
            if isinstance(there, property):
                continue
            signature = there.__nb_signature__[-1][0]  # of overloads the last, as in the dictionary
            arguments = [each.arg for each in function.args.args if each.arg != "self"]
            assert arguments == re.findall(r"(\w+): ", signature)


def test_arrays_of_another_type_or_layout_are_refused_not_converted():
    Z, parameter = np.eye(3), np.arange(3)
    for wrong in (Z.astype(np.float32), Z.T[::-1], np.eye(6)[::2, ::2], Z[0], Z.tolist(), None):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            echelon.pivot(wrong, parameter, 0, 0)
    with pytest.raises(TypeError):
        echelon.pivot(Z, parameter.astype(np.int32), 0, 0)
    Z.setflags(write=False)
    with pytest.raises(TypeError):
        echelon.pivot(Z, parameter, 0, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: echelon.pivot(np.eye(3), np.arange(3), 3, 0),
        lambda: echelon.pivot(np.eye(3), np.arange(3), 0, -1),
        lambda: echelon.pivot(np.eye(3), np.arange(3), 1, 0),
        lambda: echelon.pivot(np.eye(3), np.array([0, 1, 9]), 0, 0),
        lambda: echelon.strongest(np.zeros((0, 3)), 0),
        lambda: echelon.push(np.eye(3), np.arange(3), np.zeros(2), np.zeros(3), np.ones(3), 0, 1.0, 1.0),
        lambda: circuits.lightest(np.eye(3), np.arange(3), np.array([5])),
        lambda: cholesky.Factor(np.array([0, 1]), np.array([1]), WHOLE, WHOLE, 8),
        lambda: cholesky.postorder(np.array([0])),
        lambda: cholesky.elimination_tree(np.array([0, 2]), np.array([0])),
        lambda: ordering.minimum_degree(np.array([0, 1]), np.array([0])),
        lambda: ordering.minimum_degree(np.array([0, 3, 4]), np.array([1, 1, 1, 0])),
        lambda: elimination.join(np.array([0, 5]), np.arange(2), WHOLE, np.ones(2, bool)),
        lambda: gram.DenseSystem(np.array([0, 2]), np.array([1, 0]), np.ones(2), 2),
        lambda: gram.DenseSystem(np.array([0, 1]), WHOLE, np.ones(1), 1).fill(np.ones(2), np.zeros((1, 1))),
        lambda: gram.DenseSystem(np.array([0, 1]), WHOLE, np.ones(1), 1).along(np.eye(2), np.ones(1), np.ones(1), 0),
        lambda: newton(mover=WHOLE + 1),
        lambda: newton(pairs=(0, 1)),
        lambda: newton().predict(),
        lambda: interior.longest_step(np.ones(2), np.ones(3)),
        lambda: newton().stand(np.zeros(1), np.zeros(0), np.ones(2), np.ones(1)),
        lambda: gram.sparse_gram(np.array([0, 1]), np.ones(1), np.ones(1), np.array([7], np.int32), np.zeros(1)),
        lambda: mincut.narrow((WHOLE, WHOLE, np.array([0, 0]), WHOLE), WHOLE, np.ones(1, bool), *np.ones((3, 1))),
        lambda: flows.negative_cycle((WHOLE, WHOLE + 4, np.array([0, 1]), WHOLE), np.ones(1), np.ones(1)),
        lambda: patterns.stretch(np.ones(3), np.ones(3), np.ones(4)),
    ],
)
def test_what_does_not_fit_is_an_error_never_a_crash(call):
    with pytest.raises(ValueError, match=r"\w"):
        call()


def test_the_longest_step_keeps_everything_positive():
    x = np.array([4.0, 1.0, 3.0])
    assert interior.longest_step(x, np.array([-8.0, 1.0, -3.0])) == 0.5
    assert interior.longest_step(x, np.ones(3)) == 2.0  # nobody goes further
    assert interior.longest_step(np.zeros(0), np.zeros(0)) == 2.0


def slow_search():
    """How far each of many variables can go at most: minutes of work."""
    rng = np.random.default_rng(0)
    Z = np.hstack([np.eye(600), rng.integers(-1, 2, (600, 1800)).astype(float)])
    n = Z.shape[1]
    requests = (np.zeros(n, np.int64), np.arange(n), np.full(n, 1e6), np.full(n, 1e6), np.zeros(n))
    known = (np.zeros(2, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    return Z, np.arange(600), np.full(n, -99.0), np.full(n, 99.0), known, requests, np.zeros((0, n)), n


def test_a_limit_is_kept_inside_a_loop():
    arguments = slow_search()
    begin = time.process_time()
    _, failed = patterns.prove(*arguments, time_left_s=0.3)
    assert time.process_time() - begin < 5.0
    assert failed.any()  # what was not looked at counts as not met


def test_ctrl_c_is_heard_inside_a_loop():
    arguments = slow_search()
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begin = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        patterns.prove(*arguments)
    assert time.process_time() - begin < 5.0


def test_other_threads_go_on_meanwhile():
    arguments = slow_search()
    worker = threading.Thread(target=patterns.prove, args=arguments, kwargs={"time_left_s": 1.0})
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0.01)
    assert turns > 10


def test_arcs_of_the_nodes():
    start, arcs = build_adjacency(np.array([0, 0, 2]), np.array([1, 2, 2]), 3)
    assert [arcs[start[i] : start[i + 1]].tolist() for i in range(3)] == [[0, 1], [~0], [~1, 2, ~2]]
