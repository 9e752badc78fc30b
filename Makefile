# mod_downloads: build, check, try and install.  `make help` lists the targets.
#
# To be set on the command line:
#   CC=clang           another compiler            WERROR=1       warnings are errors
#   V=1                shows the commands
#   BUILD=dir          another output folder       APXS=/path     another httpd's apxs
#   MPM=worker         test: event (default), worker, prefork
#   TESTS="t/api/lists.t"   test: these suites only     DATABASES=pgsql  test: on this database only
#   INSTANCE=dir DB=pgsql RATE_LIMIT=off           run
#   INSTANCE=dir KEEP=1                            demo
#   DESTDIR=dir PREFIX=/usr                        install

APXS   ?= $(firstword $(wildcard /usr/bin/apxs /usr/bin/apxs2) apxs)
BUILD  ?= build
CFLAGS ?= -O2 -g

SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:

# For a make inside a make: as many jobs as there are cores unless the caller chose.
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
.DEFAULT_GOAL := all

# --- sources: a new file in one of these folders needs no change here ---------------------------

LIB_SOURCES    := $(wildcard base/*.c storage/*.c db/*.c core/*.c)
START_SOURCES  := worker/process.c worker/schema.c
JOB_SOURCES    := $(filter-out $(START_SOURCES),$(wildcard worker/*.c))
HTTPD_SOURCES  := $(wildcard *.c api/*.c delivery/*.c settings/*.c) $(START_SOURCES)
MODULE_SOURCES := $(HTTPD_SOURCES) $(JOB_SOURCES)
CTL_SOURCES    := $(wildcard ctl/*.c)
UNIT_SOURCES   := $(wildcard t/unit/*.c)
SOURCES        := $(LIB_SOURCES) $(MODULE_SOURCES) $(CTL_SOURCES) $(UNIT_SOURCES)
FORMATTED      := $(SOURCES) $(wildcard *.h base/*.h storage/*.h db/*.h core/*.h worker/*.h api/*.h \
                  delivery/*.h settings/*.h ctl/*.h t/unit/*.h)
SQL            := $(wildcard sql/*.sql sql/queries/*.sql sql/migrations/*.sql)

# --- flags --------------------------------------------------------------------------------------

# Asked once, and only by a goal that compiles: `make help` and `make clean` work on a bare machine.
# System folders, for the warnings that httpd's and APR's own macros would cause are not ours.
LIBRARY_FLAGS   = $(eval LIBRARY_FLAGS := $(patsubst -I%,-isystem %,$(filter-out -I/usr/include,$(shell \
              $(or $(shell $(APXS) -q APR_CONFIG),apr-1-config) --cppflags --includes; \
              $(or $(shell $(APXS) -q APU_CONFIG),apu-1-config) --includes; \
              pg_config --includedir | sed s/^/-I/))))$(LIBRARY_FLAGS)
HTTPD_FLAGS = $(eval HTTPD_FLAGS := -isystem $(shell $(APXS) -q INCLUDEDIR))$(HTTPD_FLAGS)

WARNINGS    := -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror)
ALL_CFLAGS   = -std=gnu11 $(CFLAGS) $(WARNINGS) -fvisibility=hidden -fPIC -pthread \
               -I. -I$(BUILD)/gen $(LIBRARY_FLAGS) $(CPPFLAGS)
LIBRARIES   := -lcurl -ljansson -lcrypto -ldeflate -lsqlite3 -lpq -laprutil-1 -lapr-1

# A line for each file; V=1 shows the commands.
say = $(if $(V),,@echo '  $(CC) $(1)';)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

GENERATED    := $(BUILD)/gen/db/statements.c $(BUILD)/gen/db/migrations.c
GEN_OBJECTS  := $(patsubst $(BUILD)/gen/%.c,$(BUILD)/obj/gen/%.o,$(GENERATED))
API_OBJECT   := $(BUILD)/obj/gen/api/openapi_text.o
LIB_OBJECTS  := $(call object,$(LIB_SOURCES)) $(GEN_OBJECTS)
UNIT_PROGRAMS := $(patsubst t/unit/%.c,$(BUILD)/unit/%,$(UNIT_SOURCES))
OBJECTS      := $(call object,$(SOURCES)) $(GEN_OBJECTS) $(API_OBJECT)

$(call object,$(HTTPD_SOURCES)): ALL_CFLAGS += $(HTTPD_FLAGS)

# Where downloadsctl looks unless it is told: what tools/install makes, enabled.
SYSCONFDIR = $(eval SYSCONFDIR := $(shell $(APXS) -q SYSCONFDIR))$(SYSCONFDIR)
CONF_FILE  = $(SYSCONFDIR)/$(if $(filter /etc/apache2,$(SYSCONFDIR)),mods-enabled/downloads,extra/mod_downloads).conf
$(call object,ctl/downloadsctl.c): ALL_CFLAGS += -DMDL_CONF_FILE='"$(CONF_FILE)"'

# --- build --------------------------------------------------------------------------------------

.PHONY: all build run demo test install postman clean help format lint unit check-format check-code \
        check-demo check-rooms check-docs check-openapi check-exports check-warnings suites sanitize sanitize-suites valgrind dependencies

all: build ## builds the module and downloadsctl (the default)

build: $(BUILD)/mod_downloads.so $(BUILD)/downloadsctl

$(BUILD)/mod_downloads.so: $(call object,$(MODULE_SOURCES)) $(API_OBJECT) $(BUILD)/libmdl.a
	$(call say,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -pthread -o $@ $^ $(LIBRARIES)

$(BUILD)/downloadsctl: $(call object,$(CTL_SOURCES)) $(BUILD)/libmdl.a
	$(call say,$@)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIBRARIES)

$(UNIT_PROGRAMS): $(BUILD)/unit/%: $(BUILD)/obj/t/unit/%.o $(BUILD)/libmdl.a
	@mkdir -p $(@D)
	$(call say,$@)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(LIBRARIES)

# Removed first: ar would keep the members whose sources are gone.
$(BUILD)/libmdl.a: $(LIB_OBJECTS)
	@rm -f $@
	$(call say,$@)$(AR) rcs $@ $^

$(call object,$(SOURCES)): $(BUILD)/obj/%.o: %.c | $(BUILD)/gen/stamp
	@mkdir -p $(@D)
	$(call say,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(GEN_OBJECTS) $(API_OBJECT): $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(call say,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# sql2c leaves a file alone that would not change, so a new query rebuilds what includes its name.
$(BUILD)/gen/stamp: tools/sql2c $(SQL) $(wildcard sql/queries sql/migrations)
	tools/sql2c sql $(BUILD)/gen/db
	@touch $@

$(GENERATED) $(BUILD)/gen/db/statements.h: $(BUILD)/gen/stamp ;

# Only api/openapi.c includes what is made here; check-code reads it too.
$(BUILD)/gen/api/stamp: tools/yaml2c api/openapi.yaml
	tools/yaml2c api/openapi.yaml $(BUILD)/gen/api
	@touch $@

$(BUILD)/gen/api/openapi_text.c $(BUILD)/gen/api/openapi_text.h: $(BUILD)/gen/api/stamp ;
$(call object,api/openapi.c): | $(BUILD)/gen/api/stamp

-include $(OBJECTS:.o=.d)

# --- try ----------------------------------------------------------------------------------------

run: dependencies ## runs an instance in the foreground (INSTANCE=dir DB=pgsql RATE_LIMIT=off)
	@$(SUBMAKE) build
	@APXS='$(APXS)' BUILD='$(BUILD)' exec tools/run

demo: dependencies ## performs the main job step by step against a fresh instance (KEEP=1)
	@$(SUBMAKE) build
	@APXS='$(APXS)' BUILD='$(BUILD)' exec tools/demo

dependencies: # installs the packages that a build and an instance need
	@tools/dependencies build

# --- check --------------------------------------------------------------------------------------

test: ## runs everything that checks the project, the same as CI
	@tools/dependencies test
	@$(SUBMAKE) lint
	@$(SUBMAKE) unit
	@$(SUBMAKE) suites
	@$(SUBMAKE) check-demo

check-demo: build # the demo ends well
	@APXS='$(APXS)' BUILD='$(BUILD)' tools/check-demo

lint: check-format check-rooms check-docs check-openapi check-code check-warnings check-exports ## every check that runs nothing

check-format: # each file is as clang-format writes it
	clang-format --dry-run -Werror $(FORMATTED)

check-rooms: ## includes go one way, and one library is in one place
	tools/check-rooms

check-exports: build ## the module exports its record and nothing else
	tools/check-exports $(BUILD)/mod_downloads.so

check-openapi: $(BUILD)/openapi.checked ## spectral, with OWASP's rules, and redocly have nothing to say

# Both take seconds, so an unchanged document is not looked at again.
$(BUILD)/openapi.checked: api/openapi.yaml t/node/spectral.yaml t/node/redocly.yaml t/node/package-lock.json
	@mkdir -p $(@D)
	tools/node spectral lint --quiet --fail-severity=hint --ruleset t/node/spectral.yaml api/openapi.yaml
	tools/node redocly lint --config t/node/redocly.yaml api/openapi.yaml >$@.log 2>&1 && \
	    ! grep -q warning $@.log || { cat $@.log; exit 1; }
	@touch $@

check-docs: # the guides quote what the files say
	tools/check-docs README.md CONTRIBUTING.md docs/*.md

check-code: $(BUILD)/gen/stamp $(BUILD)/gen/api/stamp # cppcheck; tools/cppcheck.suppressions says why something is let through
	tools/check-code $(BUILD) $(SOURCES)

check-warnings: # gcc and clang have nothing to say
	@$(SUBMAKE) BUILD=$(BUILD)/gcc CC=gcc WERROR=1 build programs
	@$(SUBMAKE) BUILD=$(BUILD)/clang CC=clang WERROR=1 build programs

.PHONY: programs
programs: $(UNIT_PROGRAMS)

unit: programs $(BUILD)/downloadsctl ## runs the unit programs
	tools/as-user tools/with-postgres prove --timer --exec '' $(UNIT_PROGRAMS) $(wildcard t/unit/*.t)

suites: build ## runs the Apache::Test suites on each database (MPM=worker TESTS="t/api/lists.t")
	@tools/node
	tools/suites

SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

sanitize: ## runs the unit programs with AddressSanitizer and UndefinedBehaviorSanitizer
	@$(SUBMAKE) BUILD=$(BUILD)/sanitize CFLAGS='-O1 -g $(SANITIZERS)' unit

sanitize-suites: ## runs the suites with the sanitizers in httpd (TESTS DATABASES)
	@$(SUBMAKE) BUILD=$(BUILD)/sanitize CFLAGS='-O1 -g $(SANITIZERS)' build
	@tools/node
	SANITIZER_RUNTIME="$$($(CC) -print-file-name=libasan.so)" BUILD=$(BUILD)/sanitize tools/suites

valgrind: programs ## runs the unit programs under valgrind's memcheck
	tools/as-user tools/with-postgres prove --timer --exec \
	    'valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite' \
	    $(UNIT_PROGRAMS)

.PHONY: check-large
check-large: build ## sends an archive of 15 GB and has every program read it (minutes, 16 GB of TMPDIR)
	@tools/node
	LARGE=1 TESTS=t/delivery/zip_large.t DATABASES=sqlite3 tools/suites

.PHONY: check-slow
check-slow: build ## waits for what the service waits for minutes for, on both databases
	@tools/node
	SLOW=1 TESTS=t/metering/patience.t tools/suites

.PHONY: bench-lists
bench-lists: build ## times the first and the 1,000th page of every list (DB=pgsql)
	APXS='$(APXS)' BUILD='$(BUILD)' t/bench/lists

# --- write --------------------------------------------------------------------------------------

format: ## rewrites the C files as .clang-format says
	clang-format -i $(FORMATTED)

compile_commands.json: $(SOURCES) Makefile ## for editors and clang-tidy, by bear
	@rm -rf $(BUILD)/bear
	bear -- $(SUBMAKE) BUILD=$(BUILD)/bear build programs

postman: $(BUILD)/mod_downloads.postman_collection.json ## makes a Postman collection of the API, in build

$(BUILD)/mod_downloads.postman_collection.json: $(BUILD)/gen/api/stamp tools/postman t/node/postman.mjs
	tools/postman $(BUILD)/gen/api/openapi.json $@

install: build ## installs module, command, man page, docs, sql, conf and templates (DESTDIR PREFIX)
	APXS='$(APXS)' BUILD='$(BUILD)' tools/install

clean: ## removes what make made
	rm -rf $(BUILD) compile_commands.json

help: ## lists the targets
	@sed -n 's/^\([a-z_.-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 26
