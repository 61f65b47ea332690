"""Answers of networks on a visitor's pictures: asked once, kept for the session, let go together."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def _script() -> None:
    import streamlit as st

    from pages.parts import queued

    counts = st.session_state.setdefault("counts", {})

    def work(name: str, key: int) -> str:
        counts[name, key] = counts.get((name, key), 0) + 1
        if key < 0:
            raise ValueError("This picture cannot be read.")
        return f"{name} {key}"

    key = int(st.number_input("Key", -1, 100, 1, key="key"))
    try:
        st.markdown(queued.through_runner("first", key, lambda: work("first", key)))
        st.markdown(queued.through_runner("second", key, lambda: work("second", key), "Looking …"))
    except ValueError as problem:
        st.warning(str(problem))
    st.button("Forget", on_click=queued.forget_answers, key="forget")


def _counts(app: AppTest) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = app.session_state["counts"]
    return counts


def _shown(app: AppTest, key: int) -> None:
    app.number_input(key="key").set_value(key).run()
    assert [m.value for m in app.markdown] == [f"first {key}", f"second {key}"]


def test_an_answer_is_computed_once_and_each_memory_has_its_own():
    app = AppTest.from_function(_script, default_timeout=30).run()
    _shown(app, 2)
    _shown(app, 1)
    assert _counts(app) == {(name, key): 1 for name in ("first", "second") for key in (1, 2)}


def test_forgetting_lets_go_of_every_memory():
    app = AppTest.from_function(_script, default_timeout=30).run()
    before = set(app.session_state["first"]), set(app.session_state["second"])
    assert before == ({1}, {1})
    app.button(key="forget").click().run()
    assert _counts(app) == {("first", 1): 2, ("second", 1): 2}


def test_only_so_many_pictures_are_kept_and_the_oldest_go_first():
    from pages.parts.queued import KEPT

    app = AppTest.from_function(_script, default_timeout=30).run()
    for key in range(2, KEPT + 2):
        app.number_input(key="key").set_value(key).run()
    assert list(app.session_state["first"]) == list(range(2, KEPT + 2))
    _shown(app, 1)
    assert _counts(app)["first", 1] == 2


def test_what_goes_wrong_is_said_and_not_kept():
    app = AppTest.from_function(_script, default_timeout=30).run()
    app.number_input(key="key").set_value(-1).run()
    assert [w.value for w in app.warning] == ["This picture cannot be read."]
    assert not app.exception
    _shown(app, 3)
    assert -1 not in app.session_state["first"]
