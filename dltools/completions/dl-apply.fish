# fish completion for dl-apply

complete -c dl-apply -s n -l dry-run -d 'Do everything but write'
complete -c dl-apply -l offline -d 'Ask no engine'
complete -c dl-apply -l undo -d 'Put every container back'
complete -c dl-apply -l restore -d 'Put back at the end'
complete -c dl-apply -l hold -x -d 'How long to go on taking turns'
complete -c dl-apply -l status -d 'Print what is held'
complete -c dl-apply -l patience -x -d 'How long to wait for an engine that restarts'
complete -c dl-apply -l state-dir -x -a '(__fish_complete_directories)' -d 'Where the journal is'
complete -c dl-apply -l format -x -a 'auto table jsonl' -d 'How to print'
complete -c dl-apply -s v -l verbose -d 'Say what is going on'
complete -c dl-apply -l version -d 'Print the version'
complete -c dl-apply -s h -l help -d 'Print help'
