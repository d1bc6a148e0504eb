"""Engine drivers by name. A new engine is one module here and one line in the table."""

from collections.abc import Mapping

from engine.drivers.base import Driver, DriverError
from engine.drivers.embedded import EmbeddedDriver

DRIVERS: Mapping[str, Driver] = {driver.name: driver for driver in (EmbeddedDriver(),)}


def driver_named(name: str, drivers: Mapping[str, Driver] = DRIVERS) -> Driver:
    """Raises DriverError, naming the drivers that exist."""
    try:
        return drivers[name]
    except KeyError:
        raise DriverError(
            f"There is no engine driver {name!r}; this node has {', '.join(sorted(drivers))}."
        ) from None
