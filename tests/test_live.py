"""What of the live modules runs without a GPU: torch and triton are needed, but no chip."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from perfmodel.live import graphs  # noqa: E402


class _Stream:
    def record_event(self):
        return None


class _Graph:
    """As torch's: a capture left halfway cannot be ended well."""

    def capture_begin(self):
        pass

    def capture_end(self):
        raise RuntimeError("unjoined work")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the kernel's own")])
def test_what_breaks_a_capture_is_what_is_raised(monkeypatch, error):
    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _Graph)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: graphs.contextlib.nullcontext())

    def launch(stream):
        raise error

    with pytest.raises(type(error)) as raised:
        graphs.Graphs().timed([[launch]], cold=False)
    assert raised.value is error
