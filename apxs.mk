# The queries to apxs, and the rules that compile, link and install with its answers.
#
#   APXS=/path  another httpd's apxs; its answers are kept in $(BUILD)/apxs, and others rebuild

APXS   ?= $(firstword $(wildcard /usr/bin/apxs /usr/bin/apxs2) apxs)
BUILD  ?= build
CFLAGS ?= -O2 -g

# --- sources: a new file in one of these folders needs no change here ---------------------------

room = $(wildcard $(foreach folder,$(1),mod_downloads/$(folder)/*.c))

LIB_SOURCES    := $(call room,base base/* platform storage db core core/*)
HTTPD_SOURCES  := $(wildcard mod_downloads/*.c) $(call room,api upload delivery settings metering monitor parent)
MODULE_SOURCES := $(HTTPD_SOURCES) $(call room,worker)
CTL_SOURCES    := $(call room,ctl)
UNIT_SOURCES   := $(wildcard t/unit/*.c)
FUZZ_SOURCES   := $(wildcard t/fuzz/*.c)
SOURCES        := $(LIB_SOURCES) $(MODULE_SOURCES) $(CTL_SOURCES) $(UNIT_SOURCES) $(FUZZ_SOURCES)
SQL            := $(wildcard sql/*.sql sql/queries/*.sql sql/migrations/*.sql)

# --- flags --------------------------------------------------------------------------------------

# apxs runs once, and only for a goal that compiles, so that `make help` and `make clean` work on a bare
# machine. -isystem is there because macros of httpd and APR cause warnings.
LIBRARY_FLAGS = $(eval LIBRARY_FLAGS := $(patsubst -I%,-isystem %,$(filter-out -I/usr/include,$(shell \
              $(or $(shell $(APXS) -q APR_CONFIG),apr-1-config) --cppflags --includes; \
              $(or $(shell $(APXS) -q APU_CONFIG),apu-1-config) --includes; \
              pg_config --includedir | sed s/^/-I/))))$(LIBRARY_FLAGS)
HTTPD_FLAGS   = $(eval HTTPD_FLAGS := -isystem $(shell $(APXS) -q INCLUDEDIR))$(HTTPD_FLAGS)

# The configuration that downloadsctl reads by default, which is where tools/install puts it.
SYSCONFDIR    = $(eval SYSCONFDIR := $(shell $(APXS) -q SYSCONFDIR))$(SYSCONFDIR)
CONF_FILE     = $(SYSCONFDIR)/$(if $(filter /etc/apache2,$(SYSCONFDIR)),mods-enabled/downloads,extra/mod_downloads).conf

# The httpd that `downloadsctl check` asks whether it would start.
SBINDIR       = $(eval SBINDIR := $(shell $(APXS) -q SBINDIR))$(SBINDIR)
HTTPD         = $(SBINDIR)/$(shell $(APXS) -q PROGNAME)

# Debian's hardening flags; _FORTIFY_SOURCE needs an optimization.
HARDENING     ?= -fstack-protector-strong -fstack-clash-protection -Wformat -Wformat-security \
                 $(if $(filter -O%,$(filter-out -O0,$(CFLAGS))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
LINK           = $(CC) $(CFLAGS) -Wl,-z,relro,-z,now $(LDFLAGS) -pthread
WARNINGS      := -Wall -Wextra -Wshadow -Wconversion $(if $(WERROR),-Werror)
ALL_CFLAGS     = -std=gnu11 $(HARDENING) $(CFLAGS) $(WARNINGS) -fvisibility=hidden -fPIC -pthread \
                 -Imod_downloads -I. -I$(BUILD)/gen $(LIBRARY_FLAGS) $(CPPFLAGS)
LIBRARIES     := -lcurl -ljansson -lcrypto -ldeflate -lpng -ljpeg -lseccomp -lutf8proc -lidn2 -lsqlite3 -lpq -laprutil-1 -lapr-1 -lm

# --- files --------------------------------------------------------------------------------------

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

GENERATED     := $(BUILD)/gen/db/statements.c $(BUILD)/gen/db/migrations.c
GEN_OBJECTS   := $(patsubst $(BUILD)/gen/%.c,$(BUILD)/obj/gen/%.o,$(GENERATED))
NEXT_OBJECT   := $(BUILD)/obj/gen/next/migrations.o
LEVELS        := $(patsubst t/operate/levels/%,$(BUILD)/level%,$(wildcard t/operate/levels/*))
LEVEL_OBJECTS := $(foreach level,$(notdir $(LEVELS)),$(patsubst %,$(BUILD)/obj/gen/$(level)/%.o,statements migrations))
API_OBJECT    := $(BUILD)/obj/gen/api/openapi_text.o
NAME_OBJECT   := $(call object,mod_downloads/base/version.c)
LIB_OBJECTS   := $(filter-out $(NAME_OBJECT),$(call object,$(LIB_SOURCES))) $(GEN_OBJECTS)
UNIT_PROGRAMS := $(patsubst t/unit/%.c,$(BUILD)/unit/%,$(UNIT_SOURCES))
FUZZ_PROGRAMS := $(patsubst t/fuzz/%.c,$(BUILD)/parsers/%,$(FUZZ_SOURCES))
OBJECTS       := $(call object,$(SOURCES)) $(GEN_OBJECTS) $(NEXT_OBJECT) $(LEVEL_OBJECTS) $(API_OBJECT)

$(call object,$(HTTPD_SOURCES)): ALL_CFLAGS += $(HTTPD_FLAGS)
$(call object,mod_downloads/ctl/downloadsctl.c): ALL_CFLAGS += -DMDL_CONF_FILE='"$(CONF_FILE)"'
$(call object,mod_downloads/ctl/httpd.c): ALL_CFLAGS += -DMDL_HTTPD='"$(HTTPD)"' -DMDL_APACHECTL='"$(SBINDIR)/apachectl"'

# --- rules --------------------------------------------------------------------------------------

# A line for each file; V=1 shows the commands.
say = $(if $(V),,@echo '  $(CC) $(1)';)

$(BUILD)/mod_downloads.so: $(call object,$(MODULE_SOURCES)) $(API_OBJECT) $(NAME_OBJECT) $(BUILD)/libmdl.a
	$(call say,$@)$(LINK) -shared -o $@ $^ $(LIBRARIES)

$(BUILD)/downloadsctl: $(call object,$(CTL_SOURCES)) $(NAME_OBJECT) $(BUILD)/libmdl.a
	$(call say,$@)$(LINK) -o $@ $^ $(LIBRARIES)

# t/unit/migrate.c has a later migration of its own, and wraps each command.
$(BUILD)/unit/migrate: $(NEXT_OBJECT)
$(BUILD)/unit/migrate: LDFLAGS += -Wl,--wrap=mdl_db_command

$(BUILD)/gen/next/migrations.c: t/unit/0002_next.sql $(BUILD)/gen/stamp
	@rm -rf $(@D) && mkdir -p $(@D) && cp -R sql $(@D)/sql && cp $< $(@D)/sql/migrations
	tools/sql2c $(@D)/sql $(@D)

# Later releases, for t/operate/upgrade*.t: each has the migrations of its folder and of those before,
# and differs in nothing but its SQL.
$(BUILD)/level%/mod_downloads.so: $(call object,$(MODULE_SOURCES)) $(API_OBJECT) $(NAME_OBJECT) \
    $(BUILD)/obj/gen/level%/statements.o $(BUILD)/obj/gen/level%/migrations.o $(BUILD)/libmdl.a
	@mkdir -p $(@D)
	$(call say,$@)$(LINK) -shared -o $@ $^ $(LIBRARIES)

$(BUILD)/level%/downloadsctl: $(call object,$(CTL_SOURCES)) $(NAME_OBJECT) \
    $(BUILD)/obj/gen/level%/statements.o $(BUILD)/obj/gen/level%/migrations.o $(BUILD)/libmdl.a
	@mkdir -p $(@D)
	$(call say,$@)$(LINK) -o $@ $^ $(LIBRARIES)

$(LEVELS:$(BUILD)/%=$(BUILD)/gen/%/stamp): $(BUILD)/gen/level%/stamp: $(wildcard t/operate/levels/*/*) $(BUILD)/gen/stamp
	@rm -rf $(@D) && mkdir -p $(@D) && cp -R sql $(@D)/sql && cp t/operate/levels/[2-$*]/*.sql $(@D)/sql/migrations
	@cat t/operate/levels/[2-$*]/*.sed 2>/dev/null | sed -i -f - $(@D)/sql/queries/*.sql
	tools/sql2c $(@D)/sql $(@D) && cmp $(@D)/statements.h $(BUILD)/gen/db/statements.h
	@touch $@

$(BUILD)/gen/level%/statements.c $(BUILD)/gen/level%/migrations.c: $(BUILD)/gen/level%/stamp ;

# A new commit changes the build's name, which is no reason to link these again.
$(UNIT_PROGRAMS): $(BUILD)/unit/%: $(BUILD)/obj/t/unit/%.o $(BUILD)/libmdl.a | $(NAME_OBJECT)
	@mkdir -p $(@D)
	$(call say,$@)$(LINK) -o $@ $(filter %.o,$^) $(BUILD)/libmdl.a $(NAME_OBJECT) $(LIBRARIES)

# t/fuzz/logo.c turns the end of a process into a jump.
$(BUILD)/parsers/logo: LDFLAGS += -Wl,--wrap=_exit
$(FUZZ_PROGRAMS): $(BUILD)/parsers/%: $(BUILD)/obj/t/fuzz/%.o $(call object,$(call room,base base/*))
	@mkdir -p $(@D)
	$(call say,$@)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBRARIES)

# Removed first: ar would keep the members whose sources are gone.
$(BUILD)/libmdl.a: $(LIB_OBJECTS)
	@rm -f $@
	$(call say,$@)$(AR) rcs $@ $^

$(call object,$(SOURCES)): $(BUILD)/obj/%.o: %.c $(BUILD)/apxs | $(BUILD)/gen/stamp
	@mkdir -p $(@D)
	$(call say,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(GEN_OBJECTS) $(NEXT_OBJECT) $(LEVEL_OBJECTS) $(API_OBJECT): $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c $(BUILD)/apxs
	@mkdir -p $(@D)
	$(call say,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The answers of apxs, written only when they have changed, so that the module is rebuilt for another
# httpd. First it checks that all headers exist.
$(BUILD)/apxs: find-tools
	@mkdir -p $(@D)
	@printf '%s\n' '$(LIBRARY_FLAGS) $(HTTPD_FLAGS) $(CONF_FILE) $(HTTPD)' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else \
	    printf '#include <%s>\n' $(HEADERS) | $(CC) $(ALL_CFLAGS) $(HTTPD_FLAGS) -fsyntax-only -x c - || \
	    { $(call missing,A header); }; mv $@.new $@; fi

# The commit that is built, "" outside of a checkout, written only when it has changed. With --git-dir
# git uses no repository around this folder, and does not check its owner. Without the lock, root leaves
# no files in another user's folder.
$(BUILD)/gen/base/commit.h: find-tools
	@mkdir -p $(@D)
	@printf '#define MDL_COMMIT "%s"\n' "$$(GIT_OPTIONAL_LOCKS=0 git --git-dir=.git --work-tree=. \
	    describe --always --dirty 2>/dev/null)" >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

$(NAME_OBJECT): $(BUILD)/gen/base/commit.h

$(BUILD)/gen/ctl/template_names.h: tools/template-names docs/templates.md $(shell find conf/templates -type f)
	@mkdir -p $(@D)
	tools/template-names >$@

$(call object,mod_downloads/ctl/templates.c): $(BUILD)/gen/ctl/template_names.h

HEADERS := httpd.h apr_dbd.h curl/curl.h jansson.h openssl/evp.h libdeflate.h png.h stdio.h jpeglib.h seccomp.h utf8proc.h idn2.h sqlite3.h libpq-fe.h
missing  = echo '$(1) is missing. On Debian, tools/dependencies build installs what a build needs.' >&2; exit 1

.PHONY: find-tools
find-tools:
	@for tool in $(firstword $(CC)) $(APXS) pg_config python3; do \
	    command -v $$tool >/dev/null || { $(call missing,'"$$tool"'); }; done

# sql2c does not touch an unchanged file, so that make rebuilds only what it must.
$(BUILD)/gen/stamp: tools/sql2c $(SQL) $(wildcard sql/queries sql/migrations) | find-tools
	tools/sql2c sql $(BUILD)/gen/db
	@touch $@

$(GENERATED) $(BUILD)/gen/db/statements.h: $(BUILD)/gen/stamp ;

# Only api/openapi.c includes these files; check-code reads them, too.
$(BUILD)/gen/api/stamp: tools/yaml2c tools/openapi2html mod_downloads/api/openapi.yaml | find-tools
	tools/yaml2c mod_downloads/api/openapi.yaml $(BUILD)/gen/api
	@touch $@

$(BUILD)/gen/api/openapi_text.c $(BUILD)/gen/api/openapi_text.h: $(BUILD)/gen/api/stamp ;
$(call object,mod_downloads/api/openapi.c): | $(BUILD)/gen/api/stamp

-include $(OBJECTS:.o=.d)

$(BUILD)/gen/mod_downloads.8: tools/conf2man conf/mod_downloads.conf
	@mkdir -p $(@D)
	tools/conf2man conf/mod_downloads.conf >$@

$(BUILD)/gen/downloadsctl.8: tools/ctl2man mod_downloads/ctl/downloadsctl.8 $(BUILD)/downloadsctl
	@mkdir -p $(@D)
	tools/ctl2man $(BUILD)/downloadsctl mod_downloads/ctl/downloadsctl.8 >$@.new
	@mv $@.new $@

.PHONY: install uninstall
install: build ## installs module, command, man page, docs, sql, conf and templates (DESTDIR PREFIX)
	APXS='$(APXS)' BUILD='$(BUILD)' tools/install

uninstall: ## removes installed files, except edited ones (DESTDIR PREFIX)
	APXS='$(APXS)' tools/install remove
