"""Long computations in steps, which others' requests come between."""

import asyncio

import pytest

from edgecache.brain.aws import xml
from edgecache.brain.aws.errors import S3Error
from edgecache.brain.core.errors import Overloaded
from edgecache.brain.core.loop_steps import STEP, in_steps
from edgecache.brain.core.share_key import use_share_of_organization

MANY = 50 * STEP


async def test_a_request_comes_between_the_steps() -> None:
    done = list[int]()
    computing = asyncio.create_task(in_steps(done.append, range(MANY)))
    for _ in range(3):
        # It is received, handled and answered in steps, as any request is.
        await asyncio.sleep(0)

    assert len(done) <= 3 * STEP
    assert len(await computing) == MANY
    assert done == list(range(MANY))


async def test_organizations_compute_in_turn() -> None:
    done = list[int]()

    async def compute(organization_id: int, count: int) -> None:
        use_share_of_organization(organization_id)
        await in_steps(lambda _: done.append(organization_id), range(count))

    greedy = [asyncio.create_task(compute(1, MANY)) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.create_task(compute(2, STEP))

    assert done.count(2) == STEP
    assert done.count(1) <= 4 * STEP
    await asyncio.gather(*greedy)


async def test_an_error_gives_the_turn_back() -> None:
    def fail(_item: int) -> None:
        raise Overloaded

    for _ in range(3):
        with pytest.raises(Overloaded):
            await in_steps(fail, [1])
    assert await in_steps(str, []) == []
    assert await in_steps(str, range(STEP)) == [str(each) for each in range(STEP)]


async def test_xml_is_read_in_pieces_of_any_content() -> None:
    # Characters of two bytes, and markup, at the borders of the pieces.
    names = [f"{'ä' * (place % 300)}&amp;" for place in range(500)]
    body = "".join(f"<Object> <Key>{name}</Key></Object>\n" for name in names)
    root = await xml.parse(f"<Delete>{body}</Delete>".encode(), "Delete")

    expected = [name.replace("&amp;", "&") for name in names]
    assert [row.value("Key") for row in root.all("Object")] == expected


async def test_xml_may_have_a_long_text() -> None:
    root = await xml.parse(b"<Delete><Key>" + b"x" * 2**20 + b"</Key></Delete>", "Delete")
    assert root.value("Key") == "x" * 2**20


@pytest.mark.parametrize(
    "body",
    [
        b"<Delete>" + b"<Object/>" * xml.ELEMENT_LIMIT + b"</Delete>",
        b"<Delete>" + b"x" * 4 * xml.PIECE_BYTES,
        b"<Delete>" + b"x" * 4 * xml.PIECE_BYTES + b"</Delete><Delete/>",
        b"",
        b"<Delete>" + b"<a/>" * 1000 + b"</Delete>",
        b"<Delete><Object a='" + b"x" * 2**20 + b"'/></Delete>",
        b"<Delete><!--" + b"x" * 2**20 + b"--></Delete>",
        b"<Delete" + b" " * 2**20 + b"/>",
    ],
    ids=["elements", "unfinished", "two roots", "empty", "short", "value", "comment", "blanks"],
)
async def test_xml_that_is_none_or_too_much_is_refused(body: bytes) -> None:
    with pytest.raises(S3Error, match="MalformedXML"):
        await xml.parse(body, "Delete")
