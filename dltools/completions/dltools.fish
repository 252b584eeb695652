# fish completion for dltools

for tool in dl-probe dl-plan dl-apply
    complete -c $tool -s v -l verbose -d 'Say what is going on'
    complete -c $tool -l version -d 'Print the version'
    complete -c $tool -s h -l help -d 'Print help'
end

complete -c dl-probe -s i -l interval -x -d 'Sample again and again'
complete -c dl-probe -s n -l count -x -d 'Stop after this many samples'
complete -c dl-probe -l duration -x -d 'Stop after this long'
complete -c dl-probe -l since -x -d 'How much of the log history to read'
complete -c dl-probe -l window -x -d 'Two counter samples this far apart'
complete -c dl-probe -l label -x -d 'Only containers with this label'
complete -c dl-probe -l name -x -d 'Only containers whose name matches'
complete -c dl-probe -l pattern -x -d 'Find progress by named groups'
complete -c dl-probe -s o -l output -r -d 'Write to a file'
complete -c dl-probe -l format -x -a 'auto table parquet arrow jsonl csv prom' -d 'How to write'

complete -c dl-plan -s p -l policy -x -a 'flowcon fair noop' -d 'Who decides'
complete -c dl-plan -l set -x -a 'alpha= itval= backoff= itval_max= signed=' -d 'Set a parameter'
complete -c dl-plan -l params -r -d 'Read parameters from TOML'
complete -c dl-plan -l realize -x -a 'quota weight' -d 'How a share becomes a setting'
complete -c dl-plan -l state -r -d 'Go on from a plan'
complete -c dl-plan -l save-state -r -d 'Write the state'
complete -c dl-plan -l every -d 'A plan for every sample'
complete -c dl-plan -l explain -d 'A table for people'
complete -c dl-plan -l policies -d 'List the policies'

complete -c dl-apply -s n -l dry-run -d 'Do everything but write'
complete -c dl-apply -l offline -d 'Ask no engine'
complete -c dl-apply -l undo -d 'Put every container back'
complete -c dl-apply -l restore -d 'Put back at the end'
complete -c dl-apply -l format -x -a 'auto table jsonl' -d 'How to print'
