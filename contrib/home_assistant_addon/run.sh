#!/usr/bin/with-contenv bashio
# Start the service with the options set in Home Assistant, and tell Home Assistant where it is.
set -e

folder=/share/tapword
mkdir -p "$folder"

arguments=(
    "$folder/$(bashio::config 'model')"
    --uri tcp://0.0.0.0:10400
    --false-alarms-per-hour "$(bashio::config 'false_alarms_per_hour')"
)
while read -r threshold; do
    if [ -n "$threshold" ] && [ "$threshold" != null ]; then
        arguments+=(--threshold "$threshold")
    fi
done <<< "$(bashio::config 'thresholds')"

(
    until (exec 3<> /dev/tcp/localhost/10400) 2> /dev/null; do sleep 1; done
    where=$(bashio::var.json uri "tcp://$(hostname):10400")
    if ! bashio::discovery wyoming "$where" > /dev/null; then
        bashio::log.error "Home Assistant was not told; add the Wyoming integration by hand"
    fi
) &

exec /opt/tapword/bin/tapword wyoming "${arguments[@]}"
