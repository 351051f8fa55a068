# The steps of .ci/run: each runs within a time limit, leaves a log and is counted.
# shellcheck shell=bash
# The caller sets `logs`, a folder.

passed=0
failed=0
declare -A seconds_of # by the name of the step
declare -A process_of # in the background, by the name of the function

# count NAME STATUS SECONDS LOG: one line, and the end of the log if the step failed.
count() {
  seconds_of[$1]=$3
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
    printf 'ok      %s (%d s)\n' "$1" "$3"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s (%d s, status %d)\n' "$1" "$3" "$2"
    grep -B 10 '^FAILED  ' "$4" # native tests that failed
    tail -n 150 "$4"
    df -h "$logs" /dev/shm
    free -m
  fi
}

# processes_of PROCESS: it and everything that it has started.
processes_of() {
  local child
  echo "$1"
  for child in $(pgrep -P "$1"); do processes_of "$child"; done
}

# Ends what still runs in the background.
end_background() {
  local process
  for process in "${process_of[@]}"; do
    mapfile -t processes < <(processes_of "$process")
    kill -KILL "${processes[@]}" 2>/dev/null
  done
}

# wait_for CONDITION…: evaluates it five times a second until it is true. Starts no process for that: loops
# with sleep took 8 % of the CPU time in ten seconds of the tests, in a virtual machine.
wait_for() {
  local never
  exec {never}<> <(:) # a pipe without data
  until "$@"; do read -rt 0.2 -u "$never"; done
  exec {never}<&-
}

has_ended() {
  ! kill -0 "$1" 2>/dev/null
}

has_ended_or_is_late() {
  has_ended "$1" || [ "$SECONDS" -ge "$2" ]
}

# end_late SECONDS NAME PROCESS…: prints the processes of NAME, which did not end in time, and ends them.
end_late() {
  local limit=$1 name=$2
  shift 2
  ps -o pid,ppid,stat,wchan:16,etime,time,args -p "$(IFS=,; echo "$*")"
  kill -KILL "$@" 2>/dev/null
  echo "$name did not end within $limit s"
}

# within SECONDS COMMAND…: runs it. After this time, prints its processes, ends them and returns 124.
within() {
  local limit=$1 end=$((SECONDS + $1)) command
  shift
  set -m # otherwise, it would ignore SIGINT
  "$@" &
  command=$!
  set +m
  wait_for has_ended_or_is_late "$command" "$end"
  if ! has_ended "$command"; then
    mapfile -t processes < <(processes_of "$command")
    end_late "$limit" "$1" "${processes[@]}"
    wait "$command" 2>/dev/null
    return 124
  fi
  wait "$command"
}

# step SECONDS NAME COMMAND…: runs it within this time and counts it.
step() {
  local limit=$1 name=$2 begin=$SECONDS
  shift 2
  within "$limit" "$@" >"$logs/step.log" 2>&1
  count "$name" $? $((SECONDS - begin)) "$logs/step.log"
}

# start POLICY FUNCTION…: runs the functions in the background, one after the other; POLICY idle: only while
# nothing else needs a processor. `await` limits the time of each and reports its result.
start() {
  local policy=$1 name
  shift
  set -m # otherwise, it would ignore SIGINT
  (
    chrt --"$policy" --pid 0 "$BASHPID"
    for name in "$@"; do
      begin=$SECONDS
      ("$name") >"$logs/$name.log" 2>&1
      echo "$? $((SECONDS - begin))" >"$logs/$name.part"
      mv "$logs/$name.part" "$logs/$name.end"
    done
  ) >"$logs/background.log" 2>&1 &
  for name in "$@"; do process_of[$name]=$!; done
  set +m
}

# Whether FUNCTION in the background has a result. One that vanished has failed.
is_finished() {
  [ -e "$logs/$1.end" ] && return
  has_ended "${process_of[$1]}" && [ ! -e "$logs/$1.end" ] && echo "1 0" >"$logs/$1.end"
}

is_finished_or_late() {
  is_finished "$1" || [ "$SECONDS" -ge "$2" ]
}

# Processes of the function that runs in the background in PROCESS, the subshell of `start`.
background_of() {
  processes_of "$1" | tail -n +2
}

# await SECONDS NAME FUNCTION: waits at most this long for FUNCTION in the background and counts its result.
# From now on it no longer leaves the processors to others, so the time before does not count. The functions
# after it go on with the policy of `start`.
await() {
  local limit=$1 name=$2 function=$3 end=$((SECONDS + $1)) status seconds process processes
  is_finished "$function" || for process in $(background_of "${process_of[$function]}"); do
    chrt --other --pid 0 "$process" 2>/dev/null
  done
  wait_for is_finished_or_late "$function" "$end"
  if ! is_finished "$function"; then
    mapfile -t processes < <(background_of "${process_of[$function]}")
    end_late "$limit" "$function" "${processes[@]}" >>"$logs/$function.log" 2>&1
    wait_for is_finished "$function"
  fi
  unset "process_of[$function]"
  read -r status seconds <"$logs/$function.end"
  count "$name" "$status" "$seconds" "$logs/$function.log"
}

# Prints the longest steps and the totals. Returns 1 if any has failed.
report() {
  local name
  echo "slowest steps:"
  for name in "${!seconds_of[@]}"; do echo "  ${seconds_of[$name]} s  $name"; done | sort -rn | head -n 5
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}
