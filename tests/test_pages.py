"""The page of this process: it shows what runs here, and is not there before it is asked for."""

import pytest

import spartan_ng as np
from spartan_ng import pages, session
from spartan_ng.events import record
from tests.pages import keys, rows
from tests.waiting import until


@pytest.fixture(autouse=True)
def planned():
    """All is planned; the page is closed behind the test."""
    with np.config.override(small_bytes=0, kernels="interpret"):
        yield
    pages.close()
    assert not record.is_on


def seen_on(url):
    """A user's function that ends when the page has shown it."""

    def seen(tile):
        until(
            lambda: (
                tile.size == 1 or any(".seen (test_pages.py:" in stack for stack in keys(url, "functions"))
            )
        )
        return tile

    return seen


@pytest.mark.slow
def test_the_page_shows_what_this_process_runs(capsys):
    page = np.page()
    assert capsys.readouterr().out.strip() == page.url
    assert page._repr_html_().startswith(f'<a href="{page.url}"')
    assert np.exp(np.arange(10_000.0) * 0).sum().item() == 10_000
    job = rows(page.url, "jobs")[-1]
    assert (job["state"], job["line"].partition(":")[0]) == ("done", "test_pages.py")
    assert any("exp" in stage["name"] for plan in rows(page.url, "plans") for stage in plan["stages"])
    assert job["stages"]
    until(lambda: rows(page.url, "workers")[0]["used"] > 0)
    assert np.page().url == page.url
    session.embed()
    assert np.arange(10_000.0).sum().item() == 49_995_000
    assert np.map(seen_on(page.url), np.arange(10_000.0)).sum().item() == 49_995_000
    assert len(rows(page.url, "jobs")) >= 2
    assert rows(page.url, "jobs")[-1]["stages"]

    def breaks(tile):
        if tile.size > 1:
            raise ValueError("on purpose")
        return tile

    with pytest.raises(np.errors.UserFunctionError):
        np.map(breaks, np.arange(10_000.0)).sum().item()
    assert "on purpose" in rows(page.url, "jobs")[-1]["error"]
