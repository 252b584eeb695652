# fish completion for dl-report

# generated: options
complete -c dl-report -l baseline -x -d 'The run that ratios are to'
complete -c dl-report -l jobs -d 'A row per job, which one run alone has anyway'
complete -c dl-report -l plot -x -a 'compare gantt limits progress cdf satisfied' -d 'What a picture shows: compare, gantt, limits, progress, cdf or satisfied'
complete -c dl-report -s o -l output -r -d 'Write to a file, all or nothing'
complete -c dl-report -l format -x -a 'auto table markdown csv jsonl html svg png' -d 'auto: as the name of --output ends'
complete -c dl-report -l scale -x -d 'With png: dots as for a screen of scale N'
complete -c dl-report -l title -x -d 'Heading of a page'
complete -c dl-report -l version -d 'Print the version and exit'
complete -c dl-report -s h -l help -d 'Show this message and exit'
# end
