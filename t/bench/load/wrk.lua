-- The requests of a run of wrk, as the environment says; Bench/Load.pm sets it.
--
--   BENCH_METHOD  BENCH_PATH  BENCH_BODY  BENCH_KEY  BENCH_RANGE  BENCH_KIND
--   BENCH_PATHS   a file of paths, used one after the other
--   BENCH_TYPE    the body's media type, by default JSON
--   BENCH_IDEM    the Idempotency-Key
--   BENCH_FROM    the number that {n} stands for in path, body and Idempotency-Key; each request adds 1.
--                 {i} counts from 1
--   BENCH_RANDOM  {r} stands for a random number from 1 to this, {r1} and {r2} for the next two, {d} for
--                 a random number from 1 to 30,000
--   BENCH_STOP    sends so many requests, and stops then instead of at the end of the time; wrk asks for one at
--                 its start, which it does not send
--   BENCH_CONNECTIONS  how many there are
--   BENCH_CLOSE   each request has a connection of its own
--   BENCH_URLS    a file to which the paths of the URLs in the answers are written
local env = os.getenv
local method, path, body, idem = env('BENCH_METHOD') or 'GET', env('BENCH_PATH'), env('BENCH_BODY'), env('BENCH_IDEM')
local n, most, stop = tonumber(env('BENCH_FROM') or 0), tonumber(env('BENCH_RANDOM') or 1), tonumber(env('BENCH_STOP') or 0)
local headers, paths, urls, answers = {}, {}, nil, 0

local values = {}
local function filled(text)
    return text and (text:gsub('{(%w+)}', values))
end

function init()
    math.randomseed(n + 1)
    if env('BENCH_KEY') then headers['Authorization'] = 'Bearer ' .. env('BENCH_KEY') end
    if env('BENCH_RANGE') then headers['Range'] = env('BENCH_RANGE') end
    if env('BENCH_CLOSE') then headers['Connection'] = 'close' end
    if env('BENCH_KIND') then headers['X-Kind'] = env('BENCH_KIND') end
    if body then headers['Content-Type'] = env('BENCH_TYPE') or 'application/json' end
    if env('BENCH_PATHS') then
        for line in io.lines(env('BENCH_PATHS')) do paths[#paths + 1] = line end
    end
    if env('BENCH_URLS') then urls = io.open(env('BENCH_URLS'), 'w') end
end

local used, next_ones = 0, 0
function request()
    n = n + 1
    used = used + 1
    next_ones = math.max(0, next_ones - 1)
    local r = math.random(most)
    values = { n = string.format('%d', n), r = r, i = used, r1 = r + 1, r2 = r + 2, d = math.random(30000) }
    headers['Idempotency-Key'] = filled(idem)
    return wrk.format(method, filled(path) or paths[(used - 1) % #paths + 1], headers, filled(body))
end

-- SIGINT makes wrk print what it has measured and end.  It is sent until it has: wrk does not notice one
-- that comes too early.
local END = 'p=$PPID; (sleep 0.002; while kill -INT $p; do sleep 0.02; done) >/dev/null 2>&1 &'
if stop > 0 then
    local idle = 0

    function response(status, _, text)
        answers = answers + 1
        if urls and status == 200 and answers <= stop then
            for url in text:gmatch('"url":"https?://[^/]+([^"]+)"') do urls:write(url, '\n') end
        end
    end

    -- Milliseconds before a connection's next request.  It ends when none has another: an answer may be
    -- missing, for httpd may close a connection that has been idle just as it is used again.
    function delay()
        if used + next_ones <= stop then
            next_ones = next_ones + 1
            return 0
        end
        idle = idle + 1
        if idle == tonumber(env('BENCH_CONNECTIONS')) then
            if urls then urls:close() end
            os.execute(END)
        end
        return 3600000
    end
end

function done(summary, latency)
    local e = summary.errors
    print(string.format('BENCH %d %d %.3f %.3f %d', summary.requests, summary.duration,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000,
        e.connect + e.read + e.write + e.timeout + e.status))
end
