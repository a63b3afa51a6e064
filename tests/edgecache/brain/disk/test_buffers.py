"""Memory for small bodies, which tenants share."""

from edgecache.brain.disk.buffers import LIMIT_BYTES, Buffers


def test_a_tenant_has_a_share_of_the_memory_for_bodies() -> None:
    buffers = Buffers()
    share, size = LIMIT_BYTES // 2, 2**20

    held = [buffers.reserve(1, size) for _ in range(share // size)]

    assert all(held)
    assert buffers.reserve(1, 1) is None
    theirs = buffers.reserve(2, size)
    assert theirs is not None
    theirs()
    theirs()
    assert buffers.used_bytes == share
    for release in held:
        if release is not None:
            release()
    assert buffers.used_bytes == 0
    assert buffers.reserve(1, size)
