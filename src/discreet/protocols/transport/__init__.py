"""Links between parties: mutual TLS 1.3 with pinned certificates, bounded frames, transcripts."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Agreement": "discreet.protocols.transport.session",
        "Identity": "discreet.protocols.transport.identity",
        "Link": "discreet.protocols.transport.link",
        "Mesh": "discreet.protocols.transport.mesh",
        "Message": "discreet.protocols.transport.frames",
        "Server": "discreet.protocols.transport.server",
        "Transcript": "discreet.protocols.transport.transcript",
        "answer_requests": "discreet.protocols.transport.server",
        "connect": "discreet.protocols.transport.client",
        "request": "discreet.protocols.transport.client",
    },
)
