# fish completion for dl-plan; make docs writes its generated parts

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
            # generated: parameters
            case flowcon
                string split ' ' 'alpha= itval= itval_max= signed=true signed=false floor=true floor=false early=true early=false explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case tradl
                string split ' ' 'itval= explore= itval_max= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case dqoes
                string split ' ' 'alpha= beta= itval= itval_max= gain=direct gain=fixed explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case specon
                string split ' ' 'alpha= itval= cooldown= load=progressing load=jobs load=cpu pause= stale= within=none within=srtf explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case noop
                string split ' ' 'explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case fair
                string split ' ' 'explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case las
                string split ' ' 'itval= queue= factor= queues= floor= explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case slaq
                string split ' ' 'itval= floor= explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            case srtf
                string split ' ' 'itval= explore= hysteresis= floor= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair'
            # end
        end
    end
end

# generated: options
complete -c dl-plan -s p -l policy -x -a 'flowcon tradl dqoes specon noop fair las slaq srtf' -d 'Scheduling policy'
complete -c dl-plan -l set -x -a '(__dltools_parameters flowcon $DLTOOLS_POLICY)' -d 'Set a policy parameter'
complete -c dl-plan -l targets -r -d 'Read targets from a TOML file, for containers without target labels'
complete -c dl-plan -l role -x -d 'Set the role of containers, overriding all other evidence: training, server, interactive or other'
complete -c dl-plan -l only-labelled -d 'Change only containers that their owners have labelled: dltools.role=training or server, or a target'
complete -c dl-plan -l state -r -d 'Continue from the plan or state in FILE'
complete -c dl-plan -l save-state -r -d 'Write the state to FILE instead of into the plans: at the end, and after each plan of a stream'
complete -c dl-plan -l every -d 'Print a plan for every sample of a recording'
complete -c dl-plan -l format -x -a 'auto table jsonl' -d 'Output format'
complete -c dl-plan -l list-policies -d 'List the policies with their parameters and classes, and exit'
complete -c dl-plan -l realize -x -a 'auto quota weight priority rotate' -d 'How allocations become settings: auto, quota, weight, priority or rotate'
complete -c dl-plan -l quantum -x -d 'Mean length of a turn, with --realize rotate'
complete -c dl-plan -s q -l quiet -d 'Print only errors and warnings on standard error, and no remarks, such as why there was nothing to do'
complete -c dl-plan -l version -d 'Print the version and exit'
complete -c dl-plan -s v -l verbose -d 'Print progress messages on standard error'
complete -c dl-plan -s h -l help -d 'Show this message and exit'
# end
