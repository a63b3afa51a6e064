"""Keys of age, as ``age-keygen`` writes them."""

from pathlib import Path

from pyrage import x25519


class Keys:
    """A pair, the private key in a file."""

    def __init__(self, folder: Path) -> None:
        identity = x25519.Identity.generate()
        self.public = str(identity.to_public())
        self.file = folder / f"{self.public[-8:]}.key"
        self.file.write_text(f"# public key: {self.public}\n{identity}\n")
