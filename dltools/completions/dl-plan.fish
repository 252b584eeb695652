# fish completion for dl-plan

# Print what --set takes of the policies on the command line, else of these.
function __dltools_parameters
    set -l policies
    set -l before
    for word in (commandline -opc)
        string match -qr '^(-p|--policy)$' -- $before; and set -a policies $word
        set -a policies (string replace -fr '^(--policy=|-p)(?=.)' '' -- $word)
        set before $word
    end
    set -q policies[1]; or set policies $argv
    string match -q 'dl-plan*' -- (commandline -opc)[1]; and set policies $policies[-1]
    for policy in $policies
        switch $policy
            case flowcon
                string split ' ' 'alpha= itval= backoff=true backoff=false itval_max= signed=true signed=false floor=true floor=false'
            case tradl
                string split ' ' 'itval= favour=nearest favour=farthest explore= backoff=true backoff=false itval_max='
            case dqoes
                string split ' ' 'alpha= beta= itval= itval_max= quantile= gain=fixed gain=adaptive trim=true trim=false'
            case specon
                string split ' ' 'alpha= itval= cooldown= load=progressing load=jobs load=cpu pause= within=none within=srtf within=slaq'
            case las
                string split ' ' 'itval= queue= factor= queues= floor='
            case slaq
                string split ' ' 'itval= floor= parts='
            case srtf
                string split ' ' 'itval= explore= hysteresis= floor='
        end
    end
end

complete -c dl-plan -s p -l policy -x -a 'flowcon tradl dqoes specon noop fair las slaq srtf' -d 'Who decides'
complete -c dl-plan -l set -x -a '(__dltools_parameters flowcon $DLTOOLS_POLICY)' -d 'Set a parameter'
complete -c dl-plan -l params -r -d 'Read parameters from TOML'
complete -c dl-plan -l realize -x -a 'auto quota weight priority rotate cores' -d 'How a share becomes a setting'
complete -c dl-plan -l quantum -x -d 'Mean length of a turn'
complete -c dl-plan -l targets -r -d 'Targets of containers without labels'
complete -c dl-plan -l state -r -d 'Go on from a plan'
complete -c dl-plan -l save-state -r -d 'Write the state'
complete -c dl-plan -l every -d 'A plan for every sample'
complete -c dl-plan -l no-state -d 'Leave the state out'
complete -c dl-plan -l explain -d 'A table for people'
complete -c dl-plan -l format -x -a 'auto table jsonl' -d 'How to print'
complete -c dl-plan -l policies -d 'List the policies'
complete -c dl-plan -s v -l verbose -d 'Say what is going on'
complete -c dl-plan -l version -d 'Print the version'
complete -c dl-plan -s h -l help -d 'Print help'
