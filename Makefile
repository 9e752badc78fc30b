# mod_downloads: build, check, try and install.  `make help` lists the targets; apxs.mk has the rules
# that compile, link and install.
#
# To be set on the command line:
#   CC=clang           another compiler            WERROR=1       warnings are errors
#   V=1                shows the commands
#   BUILD=dir          another output folder       APXS=/path     another httpd's apxs
#   TESTS="t/api/lists.t t/worker"  DATABASES=pgsql  MPM=prefork  JOBS=2   suites: only these, only there
#   INSTANCE=dir DB=pgsql RATE_LIMIT=off           run
#   INSTANCE=dir KEEP=1                            demo
#   DESTDIR=dir PREFIX=/usr                        install, uninstall

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

# For a make inside a make: as many jobs as there are cores, unless the caller has chosen.
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
.DEFAULT_GOAL := all

include apxs.mk

FORMATTED := $(SOURCES) $(wildcard t/bench/c/*.c) $(shell find mod_downloads t/unit t/fuzz -name '*.h')
PERL = $(shell find t -path t/node -prune -o -name '*.t' -print -o -name '*.p[lm]' -print) \
    t/bench/run $(shell grep -lsE '^\#!.*perl' tools/*)
SHELL_SCRIPTS = $(shell grep -lsE '^\#!/bin/(ba)?sh' tools/* .ci/* conf/container/* conf/debian/*)

# --- build --------------------------------------------------------------------------------------

.PHONY: all build run demo test test-all postman sdk deb image clean help format lint unit check-format check-shell check-code \
        check-demo check-rooms check-docs check-openapi check-exports check-hardening check-warnings levels suites sanitize sanitize-suites valgrind dependencies

all: build ## builds the module and downloadsctl (the default)

build: $(BUILD)/mod_downloads.so $(BUILD)/downloadsctl $(BUILD)/gen/mod_downloads.8 $(BUILD)/gen/downloadsctl.8

# --- try ----------------------------------------------------------------------------------------

run: dependencies ## runs an instance in the foreground (INSTANCE=dir DB=pgsql RATE_LIMIT=off)
	+@$(SUBMAKE) build
	@APXS='$(APXS)' BUILD='$(BUILD)' exec tools/run

demo: dependencies ## performs the main job step by step against a fresh instance (KEEP=1)
	+@$(SUBMAKE) build
	@APXS='$(APXS)' BUILD='$(BUILD)' exec tools/demo

dependencies: # installs the packages that a build and an instance need
	@tools/dependencies build

# --- check --------------------------------------------------------------------------------------

# The suites test the build that check-warnings has made with gcc.
TESTED = $(SUBMAKE) BUILD=$(BUILD)/gcc CC=gcc WERROR=1

# Packages are fetched before the long work.
test: ## checks the project, the same as CI (about 10 minutes on two cores)
	@echo 'This takes about 10 minutes on two cores, and longer when packages have to be installed first.'
	@tools/step packages tools/dependencies test
	@tools/step node tools/node
	+@tools/step lint $(SUBMAKE) lint
	+@tools/step unit $(TESTED) unit check-demo
	+@tools/step suites $(TESTED) suites
	@tools/step --times lint unit suites

test-all: ## the same, and each suite on each database, under each MPM and with sanitizers (hours)
	@tools/step packages tools/dependencies radosgw
	@tools/step node tools/node
	+@tools/step lint $(SUBMAKE) lint
	+@tools/step unit $(TESTED) unit check-demo
	+@tools/step suites $(TESTED) FULL=1 MPM='event worker prefork' suites
	+@tools/step checks $(TESTED) check-slow check-find check-told check-kills check-proxies check-metrics check-alerts check-events check-fuzz check-parsers check-backup check-hunt check-nodes check-objects check-radosgw check-upgrade check-plans check-large
	+@[ "$$(id -u)" != 0 ] || tools/step package $(SUBMAKE) check-deb check-image
	+@tools/step sanitizers $(SUBMAKE) sanitize valgrind sanitize-suites

check-demo: build # the demo succeeds
	@APXS='$(APXS)' BUILD='$(BUILD)' tools/check-demo

lint: check-format check-shell check-rooms check-docs check-openapi check-code check-warnings check-exports check-hardening ## all checks without running the code

check-format: # C is as clang-format writes it, and no line of Perl exceeds 100 columns
	@clang-format --dry-run -Werror $(FORMATTED)
	@! LC_ALL=C.UTF-8 grep -nE '.{101}' $(PERL)

check-shell: # shellcheck finds nothing wrong in the scripts
	shellcheck --severity=warning $(SHELL_SCRIPTS)

check-rooms: check-warnings ## includes and calls go one way, and each library is used in one place
	tools/check-rooms . $(BUILD)/gcc/obj

check-exports: check-warnings ## the module exports its record and nothing else
	tools/check-exports $(BUILD)/gcc/mod_downloads.so

check-hardening: check-warnings ## module and command have Debian's hardening
	hardening-check --quiet --nocfprotection $(BUILD)/gcc/mod_downloads.so $(BUILD)/gcc/downloadsctl

check-openapi: $(BUILD)/openapi.checked ## the OpenAPI document, by spectral with OWASP's rules and by redocly

# Both take seconds, so an unchanged document is not checked again.
$(BUILD)/openapi.checked: mod_downloads/api/openapi.yaml t/node/spectral.yaml t/node/redocly.yaml t/node/package-lock.json
	@mkdir -p $(@D)
	tools/node spectral lint --quiet --fail-severity=hint --ruleset t/node/spectral.yaml mod_downloads/api/openapi.yaml
	tools/node redocly lint --config t/node/redocly.yaml mod_downloads/api/openapi.yaml >$@.log 2>&1 && \
	    ! grep -q warning $@.log || { cat $@.log; exit 1; }
	@touch $@

check-docs: # the guides agree with the sources
	tools/check-docs README.md CONTRIBUTING.md docs/*.md t/bench/RESULTS.md

check-code: $(BUILD)/gen/stamp $(BUILD)/gen/api/stamp # cppcheck; tools/cppcheck.suppressions has the reason of each exception
	@tools/check-code $(BUILD) $(SOURCES)

check-warnings: # gcc and clang warn of nothing
	+@$(TESTED) build programs
	+@$(SUBMAKE) BUILD=$(BUILD)/clang CC=clang CFLAGS=-O0 WERROR=1 objects

.PHONY: programs objects
programs: $(UNIT_PROGRAMS)
objects: $(OBJECTS)

# The second store is not installed for each run: make check-radosgw.
UNIT_SCRIPTS := $(filter-out t/unit/radosgw.t,$(wildcard t/unit/*.t))

unit: build programs ## runs the unit programs
	tools/as-user tools/with-postgres tools/with-objects prove -j4 --timer --exec 'timeout -k 10 1200' $(UNIT_SCRIPTS) $(UNIT_PROGRAMS)
	[ "$$(id -u)" != 0 ] || BUILD='$(BUILD)' prove t/unit/downloadsctl.t # what it does when root starts it

levels: $(foreach level,$(LEVELS),$(level)/mod_downloads.so $(level)/downloadsctl) # later releases, for the suites of upgrades

suites: build levels ## runs the Apache::Test suites (TESTS DATABASES MPM JOBS; FULL=1 each on each database)
	@tools/node
	tools/suites

SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

# Two scripts load the module into an httpd without sanitizers; sanitize-suites runs one with them.
sanitize: ## runs the unit programs with AddressSanitizer and UndefinedBehaviorSanitizer
	+@$(SUBMAKE) BUILD=$(BUILD)/sanitize CFLAGS='-O1 -g $(SANITIZERS)' HARDENING= unit \
	    UNIT_SCRIPTS='$(filter-out t/unit/instance.t t/unit/downloadsctl_check.t,$(UNIT_SCRIPTS))'

sanitize-suites: ## runs the suites with the sanitizers in httpd (TESTS DATABASES)
	+@$(SUBMAKE) BUILD=$(BUILD)/sanitize CFLAGS='-O1 -g $(SANITIZERS)' HARDENING= build levels
	@tools/node
	LIMIT=3600 SANITIZER_RUNTIME="$$($(CC) -print-file-name=libasan.so)" BUILD=$(BUILD)/sanitize tools/suites

# A logo is made in a process that would be killed for valgrind's own system calls.
valgrind: programs ## runs the unit programs under valgrind's memcheck
	tools/as-user tools/with-postgres tools/with-objects prove --timer --exec \
	    'valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite' \
	    $(filter-out %/logo,$(UNIT_PROGRAMS))

.PHONY: check-large
check-large: build ## sends an archive of 15 GB, and reads it with every ZIP program (minutes, 16 GB of TMPDIR)
	@tools/node
	LARGE=1 TESTS=t/delivery/zip_large.t DATABASES=sqlite3 tools/suites

.PHONY: check-nodes
check-nodes: build ## kills, stops and restarts two nodes under load, for ten minutes (SEED CHAOS)
	@tools/node
	CHAOS=$(or $(CHAOS),600) TESTS=t/operate/nodes_chaos.t DATABASES=pgsql tools/suites

.PHONY: check-upgrade
check-upgrade: build levels ## upgrades one of two nodes after the other under load, for ten minutes (UPGRADE SEED)
	@tools/node
	UPGRADE=$(or $(UPGRADE),600) TESTS=t/operate/upgrade_load.t DATABASES=pgsql tools/suites

.PHONY: check-objects
check-objects: build ## kills, stops and cuts off three nodes, PostgreSQL and an object store under load; then the suites with files in objects (SEED CHAOS)
	@tools/node
	CHAOS=$(or $(CHAOS),600) TESTS=t/operate/objects_chaos.t DATABASES=pgsql tools/suites
	MDL_STORAGE=objects TESTS='t/api t/delivery t/metering' DATABASES=sqlite3 tools/suites

# What depends on the store: the suites and unit programs that ask for one.
.PHONY: check-radosgw
check-radosgw: build programs ## the suites and unit programs of object stores against Ceph's S3 gateway (DATABASES; minutes)
	@tools/dependencies radosgw
	@tools/node
	MDL_STORE=radosgw tools/as-user tools/with-objects prove --timer --exec 'timeout -k 10 1200' t/unit/radosgw.t t/unit/object_proxy.t \
	    $(patsubst t/unit/%.c,$(BUILD)/unit/%,$(shell grep -ls 'unit/store\.h' t/unit/*.c))
	MDL_STORE=radosgw TESTS='$(shell grep -lsE 'MDL::(Objects|Swift)\b' t/*/*.t | grep -v ^t/unit)' tools/suites

.PHONY: check-backup
check-backup: build ## kills backups and restorations at random under load, then looks at every order (ORDERS MEGABYTES KILLS SEED DATABASES)
	ORDERS=$(or $(ORDERS),4000) TESTS=t/operate/backup_drill.t tools/suites

.PHONY: check-hunt
check-hunt: build ## locks, outages, kills and restarts at random under load, for 20 minutes (HUNT SEED DATABASES)
	@tools/node
	HUNT=$(or $(HUNT),1200) TESTS=t/operate/hunt.t tools/suites

.PHONY: check-slow
check-slow: build ## behaviour that takes minutes, such as timeouts, on both databases
	@tools/node
	SLOW=1 TESTS=t/metering/patience.t tools/suites

.PHONY: check-pages
check-pages: build ## every page in each of its states, in four languages, customers' in six, wide and on phones (PICTURES LANGUAGES VIEWS STATES; an hour)
	@tools/node
	PAGES=1 LIMIT=$(or $(LIMIT),9000) TESTS=t/settings/pages.t DATABASES=sqlite3 tools/suites

.PHONY: check-find
check-find: build ## nobody learns who a shop's customers are from the time of an answer (FIND=addresses DATABASES; minutes)
	@tools/node
	FIND=$(or $(FIND),5000) TESTS=t/delivery/find_times.t tools/suites

.PHONY: check-told
check-told: build ## tells 10,000 buyers of a version, beside new orders, under kills (TOLD=buyers DATABASES; minutes)
	@tools/node
	TOLD=$(or $(TOLD),10000) TESTS=t/worker/told_kills.t tools/suites

.PHONY: check-kills
check-kills: build ## kills httpd between all writes of an answer to a customer who asks for help (KILLS DATABASES; minutes)
	@tools/node
	KILLS=$(or $(KILLS),1) TESTS=t/operate/kill_help.t tools/suites

.PHONY: check-proxies
check-proxies: build ## sends 1 GB through nginx, HAProxy and httpd, to slow clients too (minutes)
	@tools/node
	PROXIES=1 TESTS=t/delivery/proxies.t DATABASES=pgsql tools/suites

.PHONY: check-alerts
check-alerts: build ## makes each alert true and false again, under Debian's Prometheus (minutes)
	@tools/dependencies test
	@tools/node
	ALERTS=1 TESTS=t/operate/prometheus_alerts.t DATABASES=pgsql tools/suites

.PHONY: check-metrics
check-metrics: build ## what metrics cost a request: instructions by callgrind, system calls by strace (DATABASES; minutes)
	@tools/dependencies test && tools/dependencies bench
	+@$(SUBMAKE) BUILD=$(BUILD)/plain CPPFLAGS=-DMDL_METRICS=0 build
	@tools/node
	METRICS_COST=$(BUILD)/plain TESTS=t/operate/metrics_cost.t tools/suites

.PHONY: check-events
check-events: build ## reads GET /events on PostgreSQL while eight processes write 100,000 times (minutes)
	@tools/node
	EVENTS=100000 TESTS=t/api/events_followed.t DATABASES=pgsql tools/suites

.PHONY: check-fuzz
check-fuzz: build ## 20,000 random requests, made from the OpenAPI document, on each database (SEED REQUESTS DATABASES; minutes)
	@tools/node
	for db in $(or $(DATABASES),sqlite3 pgsql); do \
	    FUZZ=$(or $(REQUESTS),20000) TESTS=t/api/fuzz.t DATABASES=$$db tools/suites || exit 1; \
	done

# libFuzzer is clang's. What it finds is in BUILD/fuzz/found: give the file to its program.
.PHONY: check-parsers parsers
parsers: $(FUZZ_PROGRAMS)
check-parsers: ## random bytes for the parsers of bodies, headers, emails and images, ten minutes each (SECONDS PARSERS)
	@tools/dependencies test
	+@$(SUBMAKE) BUILD=$(BUILD)/fuzz CC=clang WERROR=1 HARDENING= CFLAGS='-O1 -g -fsanitize=fuzzer-no-link $(SANITIZERS)' parsers
	@mkdir -p $(BUILD)/fuzz/found
	@for parser in $(or $(PARSERS),$(notdir $(FUZZ_PROGRAMS))); do \
	    echo "$$parser:" && mkdir -p $(BUILD)/fuzz/corpus/$$parser && \
	    $(BUILD)/fuzz/parsers/$$parser -max_total_time=$(or $(SECONDS),600) -max_len=4096 -timeout=20 -rss_limit_mb=1024 \
	        -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/found/ $(BUILD)/fuzz/corpus/$$parser >$(BUILD)/fuzz/$$parser.log 2>&1 || \
	        { tail -n 100 $(BUILD)/fuzz/$$parser.log; exit 1; }; \
	    grep ^stat: $(BUILD)/fuzz/$$parser.log; \
	done

.PHONY: check-growth
check-growth: build ## a year of a busy shop: pruned tables stop growing (GROWTH=orders DATABASES; an hour, 10 GB of TMPDIR)
	@tools/node
	GROWTH=$(or $(GROWTH),1000000) TESTS=t/worker/growth.t tools/suites

.PHONY: check-copy-database
check-copy-database: build ## a million orders to SQLite and back, killed on the way (ORDERS; 10 minutes, 10 GB of TMPDIR)
	@tools/node
	ORDERS=$(or $(ORDERS),1000000) TESTS=t/operate/copy_database.t DATABASES=pgsql tools/suites

.PHONY: check-plans
check-plans: programs ## every query's plan, and the rows that the main requests read, with a million rows (minutes)
	MDL_TEST_ROWS=1000000 tools/as-user tools/with-postgres prove -j2 --timer --exec '' \
	    $(BUILD)/unit/queries $(BUILD)/unit/rows_read

# --- measure ------------------------------------------------------------------------------------

BENCH := $(addprefix $(BUILD)/bench/,mod_bench.so preload.so loop fetch)

.PHONY: bench bench-growth bench-lists
bench: ## how fast each kind of work is beside a minimal equivalent (ROWS DB RECORD; 30 minutes)
	@tools/dependencies bench
	+@$(SUBMAKE) build $(BENCH)
	@tools/node
	@ulimit -n $$(ulimit -Hn) && APXS='$(APXS)' BUILD='$(BUILD)' t/bench/run

bench-growth: ## how fast it stays with a million orders (ROWS DB SIZES RECORD; 45 minutes)
	+@GROWTH=1 COSTS=off $(SUBMAKE) bench

$(BUILD)/bench/%.so: t/bench/c/%.c $(BUILD)/apxs
	@mkdir -p $(@D)
	$(call say,$@)$(CC) $(ALL_CFLAGS) $(HTTPD_FLAGS) -fvisibility=default -shared -o $@ $<

$(BUILD)/bench/%: t/bench/c/%.c $(BUILD)/apxs
	@mkdir -p $(@D)
	$(call say,$@)$(CC) $(ALL_CFLAGS) -o $@ $< $(LIBRARIES)

bench-lists: build ## times the first and the 1,000th page of every list (DB=pgsql)
	APXS='$(APXS)' BUILD='$(BUILD)' t/bench/lists

.PHONY: bench-connections
bench-connections: $(BENCH) build ## the effect of DBDMax, for docs/configure.md (DB CONNECTIONS ROUNDS SECONDS)
	@tools/dependencies bench
	@ulimit -n $$(ulimit -Hn) && APXS='$(APXS)' BUILD='$(BUILD)' t/bench/connections

.PHONY: bench-objects
bench-objects: $(BENCH) build ## downloads from an object store, beside mod_proxy and static files (DB ROUNDS LARGE FILES SLOW; minutes)
	@tools/dependencies test && tools/dependencies bench
	APXS='$(APXS)' BUILD='$(BUILD)' t/bench/objects

.PHONY: bench-hostile
bench-hostile: $(BENCH) build ## times a shop's requests, imports and emails beside a hostile shop (DB SECONDS RATIO)
	@tools/dependencies test
	APXS='$(APXS)' BUILD='$(BUILD)' t/bench/hostile

.PHONY: bench-attacks
bench-attacks: $(BENCH) build ## the cost of attacks, and their effect on another shop (DB ATTACKS SECONDS SERVER_ROOT)
	@tools/dependencies test && tools/dependencies bench
	APXS='$(APXS)' BUILD='$(BUILD)' t/bench/attacks

.PHONY: bench-vacuum
bench-vacuum: build ## what autovacuum makes of large tables on PostgreSQL (ROWS; minutes)
	@tools/dependencies bench
	tools/as-user tools/with-postgres t/bench/vacuum

# --- write --------------------------------------------------------------------------------------

format: ## rewrites the C files by .clang-format
	clang-format -i $(FORMATTED)

compile_commands.json: $(SOURCES) Makefile apxs.mk ## for editors and clang-tidy, by bear
	@rm -rf $(BUILD)/bear
	+bear -- $(SUBMAKE) BUILD=$(BUILD)/bear build programs

postman: $(BUILD)/mod_downloads.postman_collection.json ## makes a Postman collection of the API, in build

$(BUILD)/mod_downloads.postman_collection.json: $(BUILD)/gen/api/stamp tools/postman t/node/postman.mjs
	tools/postman $(BUILD)/gen/api/openapi.json $@

sdk: $(BUILD)/sdk/package.json ## makes a TypeScript client of the API, in build/sdk

$(BUILD)/sdk/package.json: $(BUILD)/gen/api/stamp tools/openapi2sdk $(wildcard tools/sdk/*)
	tools/openapi2sdk $(BUILD)/gen/api/openapi.json $(@D)

deb: ## the Debian package, the source tarball and the bill of materials, in build/deb
	@tools/dependencies package
	tools/deb $(BUILD)/deb

.PHONY: check-deb
check-deb: ## builds the package twice, and installs, upgrades, removes and purges it in a clean root (minutes)
	@tools/dependencies check-package
	tools/check-deb $(BUILD)/check-deb

image: deb ## an OCI image of the package, in build/image, as root
	@tools/dependencies check-package
	tools/image $(BUILD)/image $(BUILD)/deb/libapache2-mod-downloads_*.deb

.PHONY: check-image
check-image: ## makes the image, unpacks it, and does a shop's whole job in it, on both databases (minutes)
	@tools/dependencies check-package && tools/dependencies postgresql
	tools/check-image $(BUILD)/check-image

clean: ## stops started instances and removes all built files (INSTANCE=dir)
	@tools/instance remove $(or $(INSTANCE),instance)
	@tools/instance remove $(BUILD)/demo
	rm -rf $(BUILD) compile_commands.json

help: ## lists the targets
	@sed -n 's/^\([a-z_.-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile apxs.mk | expand -t 26
