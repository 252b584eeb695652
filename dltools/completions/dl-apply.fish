# fish completion for dl-apply

# generated: options
complete -c dl-apply -s n -l dry-run -d 'Do everything but write'
complete -c dl-apply -l offline -d 'With --dry-run: ask no engine, take the plan\'s word for how the containers are'
complete -c dl-apply -l undo -d 'Put every container back as it was found, and exit'
complete -c dl-apply -l status -d 'Print what is held: who was changed, since when and by which run, and exit'
complete -c dl-apply -l restore -d 'When the input ends, or on SIGTERM or Ctrl-C, put back what this run changed'
complete -c dl-apply -l hold -x -d 'How long to go on taking turns when the input has ended'
complete -c dl-apply -l patience -x -d 'Wait this long for an engine that restarts'
complete -c dl-apply -l state-dir -x -a '(__fish_complete_directories)' -d 'Directory where dl-apply keeps its journal and turns, if not the default one'
complete -c dl-apply -l format -x -a 'auto table jsonl' -d 'auto: a table on a terminal, else JSON Lines'
complete -c dl-apply -s v -l verbose -d 'Print progress messages on standard error'
complete -c dl-apply -l version -d 'Print the version and exit'
complete -c dl-apply -s h -l help -d 'Show this message and exit'
# end
