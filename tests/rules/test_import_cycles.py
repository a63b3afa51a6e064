"""No module imports itself through others, imports for type checkers included."""

from graphlib import CycleError, TopologicalSorter

import grimp

from tests.packages import PACKAGES


def test_no_import_cycle_exists() -> None:
    """Without cycles a module can be read, tested and moved without the modules that use it."""
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False)
    order = TopologicalSorter(
        {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    )
    try:
        order.prepare()
    except CycleError as cycle:
        raise AssertionError(" -> ".join(cycle.args[1])) from None
