# The options set in Home Assistant -> the arguments of tapword home, one per line.
# $folder is where the model lies, $api the address of Home Assistant's API.
$folder + "/" + .model,
"--name", .name,
"--false-alarms-per-hour", (.false_alarms_per_hour | tostring),
"--refractory", (.refractory | tostring),
(.languages[]? | "--language", .),
(.sensitivities[]? | "--sensitivity", .),
(.thresholds[]? | "--threshold", .),
(.clients[]? |
    "--client", "\(.name)=\(.address)",
    (.name as $name | .false_alarms_per_hour // empty
        | "--false-alarms-per-hour", "\($name)/\(.)"),
    (.name as $name | .refractory // empty | "--refractory", "\($name)/\(.)"),
    (.name as $name | .sensitivity // empty | "--sensitivity", "\($name)/\(.)")),
(if .events then "--events", $api else empty end),
(if .verbose then "--verbose" else empty end)
