# fish completion for dl-apply; make docs writes its generated parts

# generated: options
complete -c dl-apply -s n -l dry-run -d 'Check everything, but change nothing'
complete -c dl-apply -l offline -d 'With --dry-run: ask no engine, and assume that each container is as the plan says'
complete -c dl-apply -l undo -d 'Restore every container that dl-apply has changed, and exit'
complete -c dl-apply -l status -d 'Print every container that dl-apply has changed: its settings before and now, since when, and by which run'
complete -c dl-apply -l restore -d 'Restore what this run changed when the input ends, or on SIGTERM, SIGHUP or Ctrl-C'
complete -c dl-apply -l hold -x -d 'Let containers take turns this long after the input has ended'
complete -c dl-apply -l host -x -d 'Engine to use, once for each: unix:///PATH, tcp://HOST:PORT or ssh://HOST'
complete -c dl-apply -l context -x -d 'Docker context of an engine'
complete -c dl-apply -l swarm -d 'Use every node of the Swarm that the engine manages'
complete -c dl-apply -l force -d 'Move jobs that have no checkpoint, too: they begin anew elsewhere'
complete -c dl-apply -l deliver-dir -x -a '(__fish_complete_directories)' -d 'Directory that models are delivered into, a folder for each'
complete -c dl-apply -l deliver-hook -x -d 'Run this command, without a shell, for each model delivered, with its folder as the last argument'
complete -c dl-apply -l hook-timeout -x -d 'Kill a hook that takes longer than this'
complete -c dl-apply -l patience -x -d 'Wait this long for an engine that restarts'
complete -c dl-apply -l state-dir -x -a '(__fish_complete_directories)' -d 'Directory where dl-apply keeps its journal and turns, if not the default one'
complete -c dl-apply -l format -x -a 'auto table jsonl' -d 'Output format'
complete -c dl-apply -s v -l verbose -d 'Print progress messages on standard error'
complete -c dl-apply -l version -d 'Print the version and exit'
complete -c dl-apply -s h -l help -d 'Show this message and exit'
# end
