"""Internal support for the engines' adapters."""

#: The engines on clusters: the module of `geomdp.tables` for each, and the library of its data.
CLUSTERS = {"dask": "dask", "ray": "ray", "spark": "pyspark"}
#: All engines, alike.
ENGINES = CLUSTERS | {"polars": "polars"}
