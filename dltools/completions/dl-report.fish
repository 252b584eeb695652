# fish completion for dl-report

complete -c dl-report -l baseline -x -d 'The run that ratios are to'
complete -c dl-report -l jobs -d 'A row per job'
complete -c dl-report -l plot -x -a 'compare gantt limits progress cdf satisfied' -d 'What a picture shows'
complete -c dl-report -s o -l output -r -d 'Write to a file'
complete -c dl-report -l format -x -a 'auto table markdown csv jsonl html svg png' -d 'How to write'
complete -c dl-report -l scale -x -d 'Of a PNG'
complete -c dl-report -l title -x -d 'Heading of a page'
complete -c dl-report -l version -d 'Print the version'
complete -c dl-report -s h -l help -d 'Print help'
