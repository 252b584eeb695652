# bash completion for dl-plan; make docs writes its generated parts

# Print what --set takes of these policies: NAME= for a number, NAME=VALUE for each choice.
_dltools_parameters() {
    local policy
    for policy; do
        case $policy in
            # generated: parameters
            flowcon) echo alpha= itval= itval_max= signed=true signed=false floor=true floor=false early=true early=false explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            tradl) echo itval= explore= itval_max= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            dqoes) echo alpha= beta= itval= itval_max= gain=direct gain=fixed explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            specon) echo alpha= itval= cooldown= load=progressing load=jobs load=cpu pause= stale= within=none within=srtf explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            noop) echo explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            fair) echo explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            las) echo itval= queue= factor= queues= floor= explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            slaq) echo itval= floor= explore= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            srtf) echo itval= explore= hysteresis= floor= latest= feeders=first feeders=equal gpu_period= owners=respect owners=ignore users=alone users=fair ;;
            # end
        esac
    done
}

# Print the policies on the command line.
_dltools_policies() {
    local at word
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        case $word in
            -p|--policy)
                [[ ${COMP_WORDS[at + 1]} == = ]] && ((at++))
                echo "${COMP_WORDS[at + 1]}" ;;
            --policy=*) echo "${word#*=}" ;;
            -p?*) echo "${word#-p}" ;;
        esac
    done
}

# Join what bash has split at =: set `text` to the word to complete, `before` to the one before it, and
# `prefix` to the part of `text` that bash keeps.
_dltools_split() {
    local at=$COMP_CWORD last=${COMP_WORDS[COMP_CWORD]}
    text=$last
    while ((at > 1)) && [[ ${COMP_WORDS[at]} == = || ${COMP_WORDS[at - 1]} == = ]]; do
        ((at--))
        text=${COMP_WORDS[at]}$text
    done
    before=${COMP_WORDS[at - 1]}
    [[ $last == = ]] && last=
    ((at < COMP_CWORD)) && prefix=${text%"$last"}
    if [[ $text == --*=* ]]; then
        before=${text%%=*} text=${text#*=} prefix=${prefix#*=}
    fi
}

# Offer words; after one that ends in = or : a value follows.
_dltools_reply() {
    COMPREPLY=($(compgen -W "$*" -- "$text"))
    [[ "${COMPREPLY[*]} " == *[=:]" "* ]] && compopt -o nospace 2>/dev/null
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
}

# Offer the parameters of the policies chosen, else of the default ones: DEFAULTS [POLICY ...].
_dltools_set() {
    local defaults=$1
    shift
    _dltools_reply $(_dltools_parameters ${@:-$defaults})
}

# Offer files (-f) or directories (-d).
_dltools_files() {
    mapfile -t COMPREPLY < <(compgen "$1" -- "$text")
}

_dl_plan() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        -p|--policy) _dltools_reply flowcon tradl dqoes specon noop fair las slaq srtf ;;
        --set) _dltools_set "${DLTOOLS_POLICY:-flowcon}" $(_dltools_policies | tail -n 1) ;;
        --targets|--state|--save-state) _dltools_files -f ;;
        --role|--quantum) COMPREPLY=() ;;
        --format) _dltools_reply auto table jsonl ;;
        --realize) _dltools_reply auto quota weight priority rotate ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --policy --set --targets --role --only-labelled --state --save-state --every --format --list-policies --realize --quantum --quiet --version --verbose --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_plan dl-plan
