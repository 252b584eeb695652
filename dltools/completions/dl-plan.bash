# bash completion for dl-plan

# What --set takes of these policies: NAME= for a number, NAME=VALUE for each choice.
_dltools_parameters() {
    local policy
    for policy; do
        case $policy in
            flowcon) echo alpha= itval= backoff=true backoff=false itval_max= signed=true signed=false floor=true floor=false ;;
            tradl) echo itval= favour=nearest favour=farthest explore= backoff=true backoff=false itval_max= ;;
            dqoes) echo alpha= beta= itval= itval_max= quantile= gain=fixed gain=adaptive trim=true trim=false ;;
            specon) echo alpha= itval= cooldown= load=progressing load=jobs load=cpu pause= within=none within=srtf within=slaq ;;
            las) echo itval= queue= factor= queues= floor= ;;
            slaq) echo itval= floor= parts= ;;
            srtf) echo itval= explore= hysteresis= floor= ;;
        esac
    done
}

# The policies on the command line.
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

# Complete what bash has split at = from these words: `text` is all of it, `before` what it follows.
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

_dltools_reply() {
    COMPREPLY=($(compgen -W "$*" -- "$text"))
    [[ "${COMPREPLY[*]} " == *"= "* ]] && compopt -o nospace 2>/dev/null
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
}

_dl_plan() {
    local text before prefix=
    _dltools_split
    case $before in
        -p|--policy) _dltools_reply flowcon tradl dqoes specon noop fair las slaq srtf; return ;;
        --realize) _dltools_reply auto quota weight priority rotate cores; return ;;
        --set)
            local policy
            policy=$(_dltools_policies | tail -n 1)
            _dltools_reply $(_dltools_parameters "${policy:-${DLTOOLS_POLICY:-flowcon}}")
            return ;;
        --format) _dltools_reply auto table jsonl; return ;;
        --params|--targets|--state|--save-state) COMPREPLY=($(compgen -f -- "$text")); return ;;
        --quantum) return ;;
    esac
    if [[ $text == -* ]]; then
        _dltools_reply --policy --set --params --realize --quantum --targets --state --save-state --every --no-state --explain --format --policies --verbose --version --help
    else
        COMPREPLY=($(compgen -f -- "$text"))
    fi
}
complete -o filenames -F _dl_plan dl-plan
