# Helpers for gdb on httpd with mod_downloads.  gdb reads this file when it is started in this
# folder and the folder is allowed: `add-auto-load-safe-path .` in ~/.config/gdb/gdbinit.
# httpd-dbgsym (apache2-bin-dbgsym, libapr1-dbgsym, libaprutil1-dbgsym) must be installed, since the
# insides of a pool are not in any public header.

define mdl_pool_line
    set $mdl_node = ((apr_pool_t *)$arg0)->active
    set $mdl_nodes = 0
    set $mdl_bytes = 0
    if $mdl_node
        set $mdl_first = $mdl_node
        set $mdl_nodes = 1
        set $mdl_bytes = $mdl_node->endp - (char *)$mdl_node
        set $mdl_node = $mdl_node->next
        while $mdl_node != $mdl_first
            set $mdl_nodes = $mdl_nodes + 1
            set $mdl_bytes = $mdl_bytes + ($mdl_node->endp - (char *)$mdl_node)
            set $mdl_node = $mdl_node->next
        end
    end
    set $mdl_indent = 0
    while $mdl_indent < $arg1
        printf "  "
        set $mdl_indent = $mdl_indent + 1
    end
    if ((apr_pool_t *)$arg0)->tag
        printf "%s ", ((apr_pool_t *)$arg0)->tag
    else
        printf "(no tag) "
    end
    printf "%p: %ld bytes in %d blocks\n", $arg0, (long)$mdl_bytes, $mdl_nodes
end
document mdl_pool_line
One line about a pool: mdl_pool_line POOL DEPTH
end

# gdb's variables are all global, so the walk keeps its depth by hand and goes up by ->parent.
define mdl_pools
    set $mdl_root = (apr_pool_t *)$arg0
    set $mdl_at = $mdl_root
    set $mdl_depth = 0
    set $mdl_walking = 1
    while $mdl_walking
        mdl_pool_line $mdl_at $mdl_depth
        if $mdl_at->child
            set $mdl_at = $mdl_at->child
            set $mdl_depth = $mdl_depth + 1
        else
            while $mdl_at != $mdl_root && !$mdl_at->sibling
                set $mdl_at = $mdl_at->parent
                set $mdl_depth = $mdl_depth - 1
            end
            if $mdl_at == $mdl_root
                set $mdl_walking = 0
            else
                set $mdl_at = $mdl_at->sibling
            end
        end
    end
end
document mdl_pools
The tree of pools under one, with tag, size and number of blocks: mdl_pools r->pool
end

define mdl_brigade
    set $mdl_brigade = (apr_bucket_brigade *)$arg0
    set $mdl_bucket = $mdl_brigade->list.next
    set $mdl_count = 0
    set $mdl_length = 0
    # The ring's sentinel is where a bucket would lie whose link is the brigade's list.
    set $mdl_end = (apr_bucket *)((char *)&$mdl_brigade->list - (char *)&((apr_bucket *)0)->link)
    while $mdl_bucket != $mdl_end && $mdl_count < 1000
        printf "%4d %-12s ", $mdl_count, $mdl_bucket->type->name
        if $mdl_bucket->length == (apr_size_t)-1
            printf "length unknown"
        else
            printf "start %ld length %ld", (long)$mdl_bucket->start, (long)$mdl_bucket->length
            set $mdl_length = $mdl_length + (long)$mdl_bucket->length
        end
        printf " data %p\n", $mdl_bucket->data
        set $mdl_bucket = $mdl_bucket->link.next
        set $mdl_count = $mdl_count + 1
    end
    printf "%d buckets, %ld bytes of known length\n", $mdl_count, $mdl_length
end
document mdl_brigade
The buckets of a brigade in order, with type, start, length and data: mdl_brigade bb
end

handle SIGPIPE nostop noprint pass
