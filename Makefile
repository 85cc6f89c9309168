# The commands of the project; `make` alone lists them. Everything is installed into .venv.
VENV := .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
CRITERION ?= --quick

help:            ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: | $(VENV)  ## set up, then noise real counts: the main job
	@echo "Compiling and installing: a minute or two, the first time"
	$(PY) -m pip install --quiet ".[demo]"
	$(PY) examples/berkeley_admissions.py

test: develop    ## the whole test suite
	cargo test --locked --quiet -p geomdp-core
	$(PY) -m pytest

clusters: engines ## on Spark, Dask and Ray, with workers that are killed
	$(PY) -m pytest tests/clusters

engines: develop ## install Spark, Dask and Ray, and Java if there is none
	command -v java >/dev/null || { apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless; }
	$(PY) -m pip install --quiet ".[dask,ray,spark]"

lint: develop    ## formatters, linters, types, stubs
	cargo fmt --all --check
	cargo fmt --check --manifest-path rust/fuzz/Cargo.toml
	cargo fmt --check --manifest-path benches/criterion/Cargo.toml
	cargo clippy --locked --workspace --all-targets --features geomdp-core/checkmem -- -D warnings
	cargo clippy --locked --manifest-path rust/fuzz/Cargo.toml --target-dir target --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --workspace --no-deps
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	cd $(VENV) && bin/python -m mypy.stubtest geomdp._core
	$(PY) scripts/third_party_licenses.py --check

backends: develop ## the OpenDP backend, against older versions of OpenDP
	bash scripts/opendp_versions.sh

rival-suites: develop ## the test suites of diffprivlib, and of OpenDP with OPENDP=checkout, on our classes
	$(PY) scripts/rival_suites.py diffprivlib
	$(if $(OPENDP),$(PY) scripts/rival_suites.py opendp --suite $(OPENDP))

examples: develop ## every example, with its timings
	$(PY) examples/opendp_histogram.py
	$(PY) examples/seeds.py

notebooks: develop ## run the notebooks
	$(PY) -m pip install --quiet ".[notebooks]"
	$(PY) scripts/run_notebooks.py

site: develop    ## the documentation site, every page of which chromium looks at; installs it if there is none
	$(PY) -m pip install --quiet ".[site]"
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; }
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet --site-dir dist/site
	$(PY) scripts/check_site.py dist/site

exhaustive:      ## all tapes of settings with up to 2^DRAW_BITS draws, or else of all: hours; ONLY names a test
	GEOMDP_DRAW_BITS=$(or $(DRAW_BITS),64) cargo test --locked --release -p geomdp-core --test exhaustive -- --nocapture \
	    $(if $(DRAW_BITS),,--include-ignored) $(ONLY)

ct: develop      ## constant time, checked on the machine code by valgrind
	bash scripts/constant_time.sh

faults: engines  ## plant FAULTS, all unless given, each of which a test must catch
	$(PYTHON) scripts/plant_faults.py $(FAULTS)

canaries: ct faults ## every check, shown to catch what it is for

mutants:         ## mutation testing of the core: hours
	command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants
	PROPTEST_DISABLE_FAILURE_PERSISTENCE=true PROPTEST_MAX_SHRINK_ITERS=0 \
		cargo mutants --package geomdp-core --output target

fuzz: develop    ## fuzz the TARGETS, all unless given, SECONDS_EACH, 60 unless given
	PYTHON="$(PY)" bash scripts/fuzz.sh $(TARGETS)

sweep: develop   ## certificates of thousands of settings, through the verifier
	$(PY) scripts/sweep_certificates.py

long: develop    ## 10^10 draws, in constant memory
	$(PY) scripts/long_run.py

deny:            ## licences and sources of all crates; installs cargo-deny, which takes minutes
	command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny
	cargo deny --offline check bans licenses sources

audit: develop   ## the observed loss of 10^9 draws, against the nominal one
	$(PY) scripts/audit.py

dudect: develop  ## times by count and by noise, compared by Welch's t: half an hour
	$(PY) benches/dudect.py

bench: develop   ## speed, as ratios to numpy in the same run
	$(PY) benches/compare.py
	$(PY) benches/backends.py
	cargo run --locked --quiet --release -p geomdp-baseline

instructions:    ## instructions of every piece of a release, against the record
	$(PYTHON) scripts/count_instructions.py

older: develop   ## speed without AVX-512 and VAES, and without AVX2
	PYTHON="$(PY)" bash benches/older_processors.sh

bench-clusters: engines ## cost of a release on Spark, Dask and Ray, beside the engines' own part
	$(PY) benches/clusters.py spark
	$(PY) benches/clusters.py dask
	$(PY) benches/clusters.py ray

rivals: develop  ## speed beside other libraries, and its picture; missing ones are left out
	-$(PY) -m pip install --quiet randomgen
	-$(PY) -m pip install --quiet python-dp
	$(PY) benches/rivals.py

scaling: develop ## cost by size, scale, bounds and threads, and its picture
	$(PY) benches/scaling.py

criterion:       ## times of every piece, in Rust: half a minute; minutes with CRITERION=
	CARGO_TARGET_DIR=$(CURDIR)/target cargo bench --locked --quiet \
		--manifest-path benches/criterion/Cargo.toml -- $(CRITERION)

pictures: develop ## draw the README's picture of a release
	$(PY) scripts/draw_pictures.py

licenses:        ## write LICENSE-THIRD-PARTY, of the crates that the wheel holds
	$(PYTHON) scripts/third_party_licenses.py

wheel:           ## build the wheel and try it in an empty environment
	PYTHON="$(PYTHON)" bash scripts/check_wheel.sh

$(VENV):
	$(PYTHON) -m venv $(VENV)

# The build backend rebuilds what has changed and nothing else.
develop: | $(VENV)
	$(PY) -m pip install --quiet ".[test,lint,demo]"

clean:           ## remove all that was built
	rm -rf $(VENV) target dist

.PHONY: help demo test clusters engines lint backends rival-suites examples notebooks site exhaustive ct faults canaries mutants fuzz sweep long deny audit \
	dudect bench bench-clusters instructions older rivals scaling criterion pictures licenses wheel develop clean
