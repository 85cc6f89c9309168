# The commands of the project; `make` alone lists them. Python packages are installed into .venv;
# programs only under CI or with INSTALL=1 (scripts/install.sh).
VENV := .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
CRITERION ?= --quick
CHECKS := $(PYTHON) scripts/checks.py
# Installs R and what its package needs.
R_PACKAGES := bash scripts/install.sh program Rscript r-base-core && \
	for each in jsonlite knitr reticulate rmarkdown; do \
		bash scripts/install.sh program /usr/lib/R/site-library/$$each r-cran-$$each || exit 1; \
	done
SOURCES := Cargo.lock Cargo.toml pyproject.toml .cargo/config.toml \
	$(shell find python rust/core/src rust/python -type f -not -name '*.pyc')

help:            ## this list
	@grep -hE '^([a-z-]+:.*##|##)' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/; s/^## /\n/' | expand -t 14

## The two commands of the README

demo: $(VENV)/.demo ## set up, then add noise to real counts: the main job
	$(PY) examples/berkeley_admissions.py

test:            ## the test suite: a third of the cases of tests with many; ALL=1 all
	$(MAKE) --no-print-directory --jobs=2 test-core test-package

# Cargo builds the first while pip installs what the second needs. `make nightly` has tapes of more
# draws, and `make lint` compiles the example.
test-core:
	GEOMDP_DRAW_BITS=22 cargo test --locked --quiet -p geomdp-core --lib --tests
	bash scripts/emulate_vaes.sh
	MAKEFLAGS= cargo test --locked --quiet -p geomdp-core --doc

test-package: develop
	TURN=$(if $(ALL),,$(shell git rev-parse HEAD)) WHOLE="$(if $(ALL),,$(shell $(PY) scripts/checks.py whole))" $(PY) -m pytest --numprocesses auto \
		$(if $(ALL),,--ignore tests/draw/test_primitives.py)

## While you work

quick: $(VENV)/.tools ## build in place, ruff, mypy, and the tests of what changed since the last commit
	@rm -f $(VENV)/.installed $(VENV)/.demo # the other commands install the package again
	VIRTUAL_ENV=$(CURDIR)/$(VENV) PIP_QUIET=1 $(VENV)/bin/maturin develop --quiet --locked --profile quick
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(CHECKS) quick

## What gates a change: `make test`, then `make gate`, which calls those of these that the change touches

gate: develop    ## everything else that gates a change, with the time of each step; BASE says what to compare with
	$(CHECKS) gate
	$(PY) scripts/plant_faults.py --gate 2

evidence:        ## the state of all checks on these inputs
	$(CHECKS)

lint: develop    ## formatters, linters, types, stubs
	cargo fmt --all --check
	cargo fmt --check --manifest-path rust/fuzz/Cargo.toml
	cargo fmt --check --manifest-path benches/criterion/Cargo.toml
	cargo clippy --locked --workspace --all-targets --features geomdp-core/checkmem -- -D warnings
	cargo clippy --locked -p geomdp-core -- -D warnings
	cargo clippy --locked --manifest-path rust/fuzz/Cargo.toml --target-dir target --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --workspace --no-deps
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/numpydoc lint $(shell find python/geomdp -name '*.py')
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(VENV)/bin/zizmor --quiet --offline .github
	$(PY) -m mypy
	$(PY) -m mypy --implicit-reexport --allow-subclassing-any --allow-untyped-calls \
		--no-warn-return-any --no-warn-unused-ignores scripts benches examples \
		$(filter-out $(wildcard tests/*/test_*.py),$(wildcard tests/*/*.py))
	cd $(VENV) && bin/python -m mypy.stubtest geomdp._core
	$(PY) scripts/third_party_licenses.py --check

proof: develop   ## the machine-checked proof, its draw against the kernel, and its checker on certificates; DAY=1 without coqchk
	bash scripts/install.sh program coqc coq
	bash scripts/install.sh program /usr/lib/ocaml/zarith/zarith.cmxa libzarith-ocaml-dev
	mkdir -p target && cargo run --locked --quiet --release -p geomdp-core --example proof_model > target/Model.v
	$(PYTHON) tests/draw/check_proof.py $(if $(DAY),--day) target/Model.v -- $(PY) tests/draw/check_certificates.py
	$(PY) tests/draw/make_vectors.py --check

proof-certificates: develop   ## certificates of the documentation's mechanisms, evaluated in Coq
	bash scripts/install.sh program coqc coq
	$(PY) tests/draw/prove_certificates.py

wheel: $(VENV)/.tools ## build the wheel, with TWICE=--twice twice to compare; try it in an empty environment
	PYTHON="$(PYTHON)" bash scripts/check_wheel.sh $(TWICE)

ct: develop      ## constant time, checked on the machine code by valgrind; DAY=1 without debug builds
	bash scripts/install.sh program valgrind
	DAY=$(DAY) bash scripts/constant_time.sh

pythons: develop ## the whole suite on CPython 3.13 and 3.14, with the newest libraries; needs root and Debian
	PYTHON="$(PY)" bash scripts/pythons.sh

oldest: develop  ## the whole suite with the oldest libraries that are supported
	PYTHON="$(PY)" bash scripts/oldest.sh

instructions:    ## instructions of every piece of a release, against the record
	bash scripts/install.sh program valgrind
	$(PYTHON) tests/constant_time/count_instructions.py

primitives: develop ## z3: the primitives of the kernel's source, for all words
	$(PY) -m pytest --numprocesses auto tests/draw/test_primitives.py

machine-code: develop ## z3: the portable kernel's instructions give the specified outputs, for all words and counts
	bash scripts/install.sh program gdb
	bash scripts/install.sh extras machine-code
	$(PY) tests/draw/prove_machine_code.py

arm64: develop   ## on an emulated AArch64 processor: STEPS of scripts/arm64.sh, all unless given; needs root and Debian
	PYTHON="$(PY)" bash scripts/arm64.sh $(STEPS)

windows:         ## the tests of the core on Windows, by wine; needs root and Debian
	bash scripts/windows.sh

faults: $(VENV)/.engines ## plant FAULTS, all unless given; a test must catch each
	bash scripts/install.sh program coqc coq
	bash scripts/install.sh program gdb
	bash scripts/install.sh program valgrind
	bash scripts/install.sh extras machine-code
	bash scripts/install.sh extras site
	bash scripts/install.sh program chromium
	$(R_PACKAGES)
	$(PY) scripts/plant_faults.py $(FAULTS)

clusters: $(VENV)/.engines ## on Spark, Dask and Ray, or ENGINE, with workers that are killed; DAY=1 leaves most to the night
	$(PY) -m pytest $(if $(ENGINE),$(addprefix tests/clusters/test_,$(ENGINE).py modules.py),tests/clusters) \
		tests/privacy/test_tracebacks.py $(if $(DAY),-m "not night")

backends: develop ## the OpenDP backend, against older versions of OpenDP; DAY=1 the oldest
	bash tests/compat/opendp_versions.sh $(if $(DAY),0.14.0,0.14.0 0.14.2 0.15.1)

examples: $(VENV)/.engines ## every example, and the source notes
	for each in examples/*.py; do PYSPARK_PYTHON=$(CURDIR)/$(PY) $(PY) $$each || exit 1; done
	$(PY) examples/source_notes/source_notes.py

notebooks: develop ## run the notebooks, and write them with outputs to dist/notebooks
	bash scripts/install.sh extras notebooks
	$(PY) scripts/run_notebooks.py

site: notebooks  ## the site with the notebooks and the page of a table, in chromium; DAY=1 a part of its pages
	bash scripts/install.sh extras site
	bash scripts/install.sh program chromium
	# Not --quiet, which hides warnings from --strict.
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --site-dir dist/site
	$(PY) scripts/check_site.py dist/site $(if $(DAY),--day)
	$(PY) -m pytest tests/browser

readers: develop ## the reader in R against the library, and its package: R CMD check, vignette; SPSS
	$(R_PACKAGES)
	bash scripts/install.sh program pspp
	$(PY) -m pytest tests/readers

## Before a release, or by night: all of the gate, whatever was touched, and an hour of searches

nightly: develop ## every check and fault with inputs that changed since it passed, and mutants of changed lines
	code=0; \
	$(CHECKS) run || code=1; \
	make faults FAULTS="--checked --owed" || code=1; \
	make mutants BASE="$$(git rev-list -1 --before=yesterday HEAD)" || code=1; \
	make survivors || code=1; \
	$(PY) benches/around.py --turns 1 || code=1; \
	exit $$code # of the last, rows still run; no time decides

survivors: develop ## changes of the package's lines of a day that no test notices, for an hour: a list to read
	bash scripts/install.sh extras mutants
	$(PY) scripts/mutate.py

unlucky: develop ## most tests again, in turns with noise as unlucky as one release in a million
	PYTHONPATH=tests UNLUCKY_SEED=$(or $(SEED),$(shell git rev-parse HEAD)) $(PY) -m pytest \
		-p unlucky --numprocesses auto \
		$(addprefix tests/,accounting accuracy compat documents fronts privacy tables)

fuzz: develop    ## fuzz the TARGETS, those of the core unless given, or python, SECONDS_EACH, 60 unless given
	PYTHON="$(PY)" SEED=$(SEED) bash scripts/fuzz.sh $(or $(TARGETS),plan kernel fold coins groups)

fuzz-readers: develop ## the readers of files on 26,000 FILES whose digests fit, in processes of their own: minutes
	$(PY) tests/tables/fuzz_readers.py $(or $(FILES),26000) $(or $(SEED),0)

exhaustive:      ## all tapes of settings with up to 2^DRAW_BITS draws, or else of all: hours; ONLY names a test
	GEOMDP_DRAW_BITS=$(or $(DRAW_BITS),64) \
		cargo test --locked --release -p geomdp-core --test exhaustive -- --nocapture \
		$(if $(DRAW_BITS),,--include-ignored) $(ONLY)

sweep: develop   ## certificates of thousands of settings, through the verifier
	$(PY) tests/draw/sweep_certificates.py

deny:            ## licences and sources of all crates; installs cargo-deny, which takes minutes
	bash scripts/install.sh crate cargo-deny
	cargo deny --offline check bans licenses sources

rival-suites: develop ## the test suites of diffprivlib, and of OpenDP with OPENDP=checkout, on our classes
	$(PY) tests/compat/rival_suites.py diffprivlib
	$(if $(OPENDP),$(PY) tests/compat/rival_suites.py opendp --suite $(OPENDP))

bridges: develop ## the rows of docs/migration.md, against SmartNoise SQL, PipelineDP, OpenDP and Tumult
	bash scripts/install.sh program java openjdk-17-jre-headless
	bash tests/compat/bridges.sh

## Hours

long:            ## before a release: all of these that have a record
	$(CHECKS) run mutants dudect

mutants:         ## mutation testing of the core: hours; only the lines changed since BASE, if given
	bash scripts/install.sh crate cargo-mutants
	bash scripts/mutants.sh $(BASE)

endurance: develop ## 10^9 draws, in constant memory
	$(PY) tests/draw/long_run.py

audit: develop   ## the observed loss of 10^9 draws, against the nominal one
	$(PY) tests/draw/audit.py

dudect: develop  ## times by count and by noise, compared by Welch's t: half an hour
	$(PY) benches/dudect.py

## Speed; nothing of it gates

bench: develop   ## speed, as ratios to numpy in the same run
	$(PY) benches/compare.py
	$(PY) benches/around.py
	$(PY) benches/backends.py
	cargo run --locked --quiet --release -p geomdp-baseline

older: develop   ## speed without AVX-512 and VAES, and without AVX2
	PYTHON="$(PY)" bash benches/older_processors.sh

bench-clusters: $(VENV)/.engines ## cost of a release on Spark, Dask and Ray, beside the engines' own part
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

## Files that are made

pictures: develop ## draw the pictures of a release and its page, of composition and of streams
	bash scripts/install.sh extras site
	bash scripts/install.sh program chromium
	$(PY) scripts/draw_pictures.py

requirements: $(VENV) ## write the versions and hashes of all that the tests and linters need
	$(PY) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes --no-annotate \
		--python-version 3.11 --extra test --extra lint --extra demo --no-emit-package geomdp \
		--custom-compile-command "make requirements" --output-file scripts/requirements.txt pyproject.toml

licenses:        ## write the licences and the bill of materials of the crates in the wheel
	$(PYTHON) scripts/third_party_licenses.py

$(VENV):
	$(PYTHON) -m venv $(VENV)

# One environment, renewed when a source has changed.
develop: $(VENV)/.installed
$(VENV)/.installed: $(SOURCES) $(VENV)/.tools
	bash scripts/build_wheel.sh
	$(PY) -m pip install --quiet --no-deps --force-reinstall dist/wheel/*.whl
	@touch $@ $(VENV)/.demo

$(VENV)/.tools: scripts/requirements.txt | $(VENV)
	$(PY) -m pip install --quiet --require-hashes -r scripts/requirements.txt
	@touch $@

$(VENV)/.demo: $(SOURCES) | $(VENV)
	@echo "Compiling and installing: a minute or two, the first time"
	$(PY) -m pip install --quiet ".[demo]"
	@touch $@

$(VENV)/.engines: pyproject.toml | $(VENV)/.installed
	bash scripts/install.sh program java openjdk-17-jre-headless
	bash scripts/install.sh extras dask ray spark clusters
	@touch $@

clean:           ## remove all that was built
	rm -rf $(VENV) target dist

.PHONY: help demo test test-core test-package quick gate evidence rival-suites bridges lint proof \
	proof-certificates primitives wheel pythons oldest ct instructions machine-code arm64 windows faults \
	clusters backends examples notebooks site readers nightly unlucky fuzz fuzz-readers exhaustive sweep \
	deny long \
	mutants endurance audit dudect bench older bench-clusters rivals scaling criterion \
	pictures requirements licenses develop clean
